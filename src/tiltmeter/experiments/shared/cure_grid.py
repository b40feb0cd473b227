"""The interventions that `cures` compares: a short grid of settings for each, fixed before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence

from tiltmeter import interventions as laws
from tiltmeter.experiments.shared.cell_tasks import ATTRIBUTE
from tiltmeter.experiments.shared.two_looks import of_both_looks
from tiltmeter.interventions import Intervention

#: Plain training, and the control that makes the bias stronger on purpose.
PLAIN, STRESS = "plain", "amplified (control)"
#: The law that must be told which inputs mislead, so that it is left out where the attribute has no inputs of its own.
TOLD = "attribution prior"

#: One law, or several that belong together.
Laws = Intervention | tuple[Intervention, ...]


def cure_grid(steps: int, misleading: Sequence[int] = ()) -> dict[str, tuple[Laws, ...]]:
    """One or two settings of every law for networks: the published or default one first, then another.

    >>> [law.power for law in cure_grid(1000)["balanced weights"]]
    [0.0, 0.5]

    `misleading` are the inputs that say the attribute and nothing else. Left out is a schedule of pulls that somebody
    gives (`PullSchedule`), which is not a method of its own. Of the weightings of another package (`JacobianDescent`)
    there is one. These groups contain the label: so laws that answer by the group of a point answer by its attribute,
    and of the penalties on unequal rates there is that on accuracies. The scout of JTT and USEFUL and the expert of
    `ProductOfExperts` take a tenth of the steps.
    """
    scout = max(1, steps // 10)
    known = of_both_looks(ATTRIBUTE)
    drawn = laws.Balanced(by="draws")
    told = tuple(laws.AttributionPrior(tuple(misleading), strength) for strength in (1.0, 0.1) if misleading)
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
        "MGDA": (laws.JacobianDescent("MGDA"),),
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
        "fairness penalty": (
            (drawn, laws.FairnessPenalty("Accuracy", strength=1.0)),
            (drawn, laws.FairnessPenalty("Accuracy", strength=0.1)),
        ),
        **({TOLD: told} if told else {}),
        "SelecMix": (laws.SelecMix(),),
        "JTT": (laws.JTT(20, scout=scout), laws.JTT(5, scout=scout)),
        "USEFUL": (laws.USEFUL(2, scout=scout), laws.USEFUL(10, scout=scout)),
        "Fish": (laws.Fish(0.05), laws.Fish(0.5)),
        "SAM": (laws.SAM(0.05), laws.SAM(0.2)),
        "gradient penalty": (laws.GradientPenalty(0.01), laws.GradientPenalty(0.1)),
        "DFR": (laws.DFR(), laws.DFR(strength=0.01)),
        "erasure": (laws.Erasure(attribute=ATTRIBUTE), laws.Erasure(attribute=ATTRIBUTE, strength=0.01)),
        "group threshold": (laws.GroupThreshold("tpr", known), laws.GroupThreshold("error", known)),
        "group temperature": (laws.GroupTemperature(known),),
        STRESS: (laws.Amplified(0.5),),
    }
