"""Changes of sign below the error of the integration are no crossings, anywhere."""

import numpy as np
import pytest

import tiltmeter as tm


class TestErrorsOfIntegration:
    """Three groups under a strong intervention: from t = 96 on, gaps of 1e-9 change their sign with the integrator's
    steps."""

    PROBLEM = tm.theory.Mixture.from_vectors(
        weight={"north": 0.6, "south": 0.3, "islands": 0.1},
        variance={"north": 0.5, "south": 1.2, "islands": 2.0},
        means={"north": [0.4, 0, 0], "south": [0, 0.3, 0], "islands": [0, 0, -0.5]},
        teachers={"north": [0, 1, 0.2], "south": [0.6, 0.8, 0], "islands": [0, 0.5, 1]},
    )
    SGD = tm.SGD(
        lr=0.2, interventions=(tm.interventions.GroupDRO(30.0, proportional=100.0, begin="shares", by="draws"),)
    )

    def theory(self, end):
        return tm.predict(self.PROBLEM, self.SGD, np.append(0.0, np.geomspace(0.01, end, 200)), curves=["loss"])

    def test_are_no_crossings(self):
        short, long = self.theory(50.0), self.theory(150.0)
        judged = [tm.leaders(one, "loss") for one in (short, long)]
        found = [one.changes for one in judged]
        assert [round(one.time, 2) for one in found[1]] == [0.1, 0.84, 2.95, 7.4]
        assert np.allclose([one.time for one in found[0]], [one.time for one in found[1]], atol=1e-5)
        assert "the gap is too small to be known" in str(judged[1])
        assert "too small" not in str(judged[0])
        for pair in (("north", "south"), ("north", "islands"), ("south", "islands")):
            assert tm.theory.crossing_count(long, pair=pair) == tm.theory.crossing_count(short, pair=pair)
        card = tm.scorecard({"plain": tm.predict(self.PROBLEM, tm.SGD(lr=0.2), long["loss"].time.values), "law": long})
        assert card["law"].crossings == 4

    @pytest.mark.slow
    def test_their_bound_survives_the_disk_and_another_clock(self, tmp_path):
        tm.save(self.theory(150.0), tmp_path / "run")
        assert len(tm.leaders(tm.load(tmp_path / "run"), "loss").changes) == 4
        assert len(tm.leaders(self.theory(150.0).on_clock("step", d=100), "loss").changes) == 4

    @pytest.mark.slow
    def test_stay_below_the_resolution(self, monkeypatch):
        from tiltmeter.theory.dynamics import steered_ode

        times = np.geomspace(0.01, 150.0, 300)
        coarse = tm.predict(self.PROBLEM, self.SGD, times, curves=["loss"])["loss"]
        monkeypatch.setattr(steered_ode, "RTOL", 1e-13)
        monkeypatch.setattr(steered_ode, "ATOL", 1e-14)
        fine = tm.predict(self.PROBLEM, self.SGD, times, curves=["loss"])["loss"]
        assert 2.0 * np.abs(coarse - fine).max() < coarse.attrs["resolution"]
