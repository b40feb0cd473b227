"""Results: the frozen values that functions return, for annotations and `isinstance`, and pages made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.advice.advice import load_advice as load_advice
    from tiltmeter.discover.discovery import Discovery as Discovery
    from tiltmeter.discover.group import DiscoveredGroup as DiscoveredGroup
    from tiltmeter.forecast.kernel.saved_tangent import load_tangent as load_tangent
    from tiltmeter.leaders.headline import Headline as Headline
    from tiltmeter.leaders.leaders import Leaders as Leaders
    from tiltmeter.leaders.phases import Crossing as Crossing
    from tiltmeter.leaders.phases import Phase as Phase
    from tiltmeter.leaders.scorecard.score import Score as Score
    from tiltmeter.leaders.scorecard.score import SeedMean as SeedMean
    from tiltmeter.leaders.scorecard.scorecard import Scorecard as Scorecard
    from tiltmeter.preview.causes import Causes as Causes
    from tiltmeter.preview.confirm import Confirmed as Confirmed
    from tiltmeter.preview.ladder import Ladder as Ladder
    from tiltmeter.preview.preview import Preview as Preview
    from tiltmeter.preview.saved import load_preview as load_preview
    from tiltmeter.report import page as page
    from tiltmeter.report.model_card import to_model_card as to_model_card

__all__ = offer(__name__)  # noqa: PLE0605
