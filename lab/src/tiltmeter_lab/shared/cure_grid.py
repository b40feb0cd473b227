"""The interventions that `cures` compares: a short grid of settings for each, fixed before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.shared.cell_tasks import ATTRIBUTE
from tiltmeter_lab.shared.two_held_out import of_both_held_out

#: Plain training, and the control that makes the bias stronger on purpose.
PLAIN, STRESS = "plain", "amplified (control)"
#: The intervention that must be told which inputs mislead, so that it is left out where the attribute has no inputs of
#: its own.
TOLD = "attribution prior"

#: One intervention, or several that belong together.
Interventions = tm.interventions.Intervention | tuple[tm.interventions.Intervention, ...]


def cure_grid(steps: int, misleading: Sequence[int] = ()) -> dict[str, tuple[Interventions, ...]]:
    """One or two settings of every intervention for networks: the published or default one first, then another.

    >>> [law.power for law in cure_grid(1000)["balanced weights"]]
    [0.0, 0.5]

    `misleading` are the inputs that say the attribute and nothing else. Left out is a schedule of pulls that somebody
    gives (`PullSchedule`), which is not a method of its own. Of the weightings of another package (`JacobianDescent`)
    there is one. These groups contain the label: so interventions that answer by the group of a point answer by its
    attribute, and of the penalties on unequal rates there is that on accuracies. The scout of JTT and USEFUL and the
    expert of `ProductOfExperts` take a tenth of the steps."""
    scout = max(1, steps // 10)
    known = of_both_held_out(ATTRIBUTE)
    drawn = tm.interventions.Balanced(by="draws")
    told = tuple(
        lab.interventions.AttributionPrior(tuple(misleading), strength) for strength in (1.0, 0.1) if misleading
    )
    return {
        "balanced weights": (tm.interventions.Balanced(), tm.interventions.Balanced(power=0.5)),
        "balanced draws": (tm.interventions.Balanced(by="draws"), tm.interventions.Balanced(power=0.5, by="draws")),
        "down-sampled": (tm.interventions.Downsampled(),),
        "group DRO": (tm.interventions.GroupDRO(0.01), tm.interventions.GroupDRO(0.1)),
        "damped DRO": (
            tm.interventions.GroupDRO(0.01, proportional=0.05),
            tm.interventions.GroupDRO(0.1, proportional=0.5),
        ),
        "adjusted DRO": (tm.interventions.GroupDRO(0.01, adjust=3.0), tm.interventions.GroupDRO(0.01, adjust=1.0)),
        "dual ascent": (tm.interventions.DualAscent(0.2, rate=0.01), tm.interventions.DualAscent(0.2, rate=0.1)),
        "V-REx": (tm.interventions.VREx(10.0), tm.interventions.VREx(1.0)),
        "tilted": (tm.interventions.Tilted(3.0), tm.interventions.Tilted(1.0)),
        "chi-square DRO": (tm.interventions.ChiSquareDRO(3.0), tm.interventions.ChiSquareDRO(10.0)),
        "group CVaR": (tm.interventions.GroupCVaR(0.5), tm.interventions.GroupCVaR(0.2)),
        "normalised gradient": (tm.interventions.NormalisedGradient(), tm.interventions.NormalisedGradient(0.1)),
        "UPGrad": (tm.interventions.UPGrad(),),
        "MGDA": (tm.interventions.JacobianDescent("MGDA"),),
        "group clipping": (tm.interventions.GroupClipping(1.0), tm.interventions.GroupClipping(0.1)),
        "CVaR": (tm.interventions.CVaR(0.5), tm.interventions.CVaR(0.2)),
        "spectral decoupling": (lab.interventions.SpectralDecoupling(0.1), lab.interventions.SpectralDecoupling(0.01)),
        "generalised cross-entropy": (
            tm.interventions.GeneralisedCrossEntropy(0.7),
            tm.interventions.GeneralisedCrossEntropy(0.3),
        ),
        "LfF": (tm.interventions.LfF(), tm.interventions.LfF(0.3)),
        "product of experts": (lab.interventions.ProductOfExperts(steps=scout),),
        "gradient reversal": (
            tm.interventions.GradientReversal(0.1, attribute=ATTRIBUTE),
            tm.interventions.GradientReversal(1.0, attribute=ATTRIBUTE),
        ),
        "fairness penalty": (
            (drawn, tm.interventions.FairnessPenalty("Accuracy", strength=1.0)),
            (drawn, tm.interventions.FairnessPenalty("Accuracy", strength=0.1)),
        ),
        **({TOLD: told} if told else {}),
        "SelecMix": (tm.interventions.SelecMix(),),
        "JTT": (tm.interventions.JTT(20, scout=scout), tm.interventions.JTT(5, scout=scout)),
        "USEFUL": (lab.interventions.USEFUL(2, scout=scout), lab.interventions.USEFUL(10, scout=scout)),
        "Fish": (lab.interventions.Fish(0.05), lab.interventions.Fish(0.5)),
        "SAM": (tm.interventions.SAM(0.05), tm.interventions.SAM(0.2)),
        "gradient penalty": (lab.interventions.GradientPenalty(0.01), lab.interventions.GradientPenalty(0.1)),
        "DFR": (tm.interventions.DFR(), tm.interventions.DFR(strength=0.01)),
        "erasure": (
            tm.interventions.Erasure(attribute=ATTRIBUTE),
            tm.interventions.Erasure(attribute=ATTRIBUTE, strength=0.01),
        ),
        "group threshold": (
            tm.interventions.GroupThreshold("tpr", known),
            tm.interventions.GroupThreshold("error", known),
        ),
        "group temperature": (tm.interventions.GroupTemperature(known),),
        STRESS: (lab.interventions.Amplified(0.5),),
    }
