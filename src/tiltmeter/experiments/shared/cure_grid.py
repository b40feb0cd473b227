"""The interventions that `cures` compares: a short grid of settings for each, fixed before anything is trained."""

from __future__ import annotations

from tiltmeter import interventions as laws
from tiltmeter.experiments.shared.cell_tasks import ATTRIBUTE
from tiltmeter.interventions import Intervention

#: Plain training, and the control that makes the bias stronger on purpose.
PLAIN, STRESS = "plain", "amplified (control)"


def cure_grid(steps: int) -> dict[str, tuple[Intervention, ...]]:
    """One or two settings of every law for networks: the published or default one first, then another.

    >>> [law.power for law in cure_grid(1000)["balanced weights"]]
    [0.0, 0.5]

    Left out are laws that are not methods of their own, a schedule of pulls that somebody gives (`PullSchedule`) and
    weightings of another package (`JacobianDescent`); laws that must be told the harmful inputs (`AttributionPrior`);
    and laws that ask for equal rates, or for the group of a point when it is judged (`FairnessPenalty`,
    `GroupThreshold`, `GroupTemperature`), since these groups contain the label. The scout of JTT and USEFUL and the
    expert of `ProductOfExperts` take a tenth of the steps.
    """
    scout = max(1, steps // 10)
    return {
        "balanced weights": (laws.Balanced(), laws.Balanced(power=0.5)),
        "balanced draws": (laws.Balanced(by="draws"), laws.Balanced(power=0.5, by="draws")),
        "down-sampled": (laws.Downsampled(),),
        "group DRO": (laws.GroupDRO(0.01), laws.GroupDRO(0.1)),
        "damped DRO": (laws.GroupDRO(0.01, proportional=0.05), laws.GroupDRO(0.1, proportional=0.5)),
        "adjusted DRO": (laws.GroupDRO(0.01, adjust=3.0), laws.GroupDRO(0.01, adjust=1.0)),
        "dual ascent": (laws.DualAscent(0.2, rate=0.01), laws.DualAscent(0.2, rate=0.1)),
        "V-REx": (laws.VREx(10.0), laws.VREx(1.0)),
        "tilted": (laws.Tilted(3.0), laws.Tilted(1.0)),
        "chi-square DRO": (laws.ChiSquareDRO(3.0), laws.ChiSquareDRO(10.0)),
        "group CVaR": (laws.GroupCVaR(0.5), laws.GroupCVaR(0.2)),
        "normalised gradient": (laws.NormalisedGradient(), laws.NormalisedGradient(0.1)),
        "UPGrad": (laws.UPGrad(),),
        "group clipping": (laws.GroupClipping(1.0), laws.GroupClipping(0.1)),
        "CVaR": (laws.CVaR(0.5), laws.CVaR(0.2)),
        "spectral decoupling": (laws.SpectralDecoupling(0.1), laws.SpectralDecoupling(0.01)),
        "generalised cross-entropy": (laws.GeneralisedCrossEntropy(0.7), laws.GeneralisedCrossEntropy(0.3)),
        "LfF": (laws.LfF(), laws.LfF(0.3)),
        "product of experts": (laws.ProductOfExperts(steps=scout),),
        "gradient reversal": (
            laws.GradientReversal(0.1, attribute=ATTRIBUTE),
            laws.GradientReversal(1.0, attribute=ATTRIBUTE),
        ),
        "SelecMix": (laws.SelecMix(),),
        "JTT": (laws.JTT(20, scout=scout), laws.JTT(5, scout=scout)),
        "USEFUL": (laws.USEFUL(2, scout=scout), laws.USEFUL(10, scout=scout)),
        "Fish": (laws.Fish(0.05), laws.Fish(0.5)),
        "SAM": (laws.SAM(0.05), laws.SAM(0.2)),
        "gradient penalty": (laws.GradientPenalty(0.01), laws.GradientPenalty(0.1)),
        "DFR": (laws.DFR(), laws.DFR(strength=0.01)),
        "erasure": (laws.Erasure(attribute=ATTRIBUTE), laws.Erasure(attribute=ATTRIBUTE, strength=0.01)),
        STRESS: (laws.Amplified(0.5),),
    }
