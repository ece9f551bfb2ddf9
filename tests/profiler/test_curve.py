"""Curves through few levels, which levels to measure, what is reused, and when a profile is too
old.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._profiler.problems import problem
from profiler.analytic import Profile
from profiler.band import SLACK, Try, unrefuted_heights, unrefuted_lines
from profiler.cache import cache_key, reused
from profiler.curve import FORMS, Point, fit
from profiler.grid import chosen, first_size
from profiler.levels import privacy_levels
from profiler.measuring.results import LevelResult, Look
from profiler.measuring.retraining import MISSED
from profiler.measuring.terms import ProfileTerms
from profiler.research import research_profile
from profiler.staleness import Made, stale
from ptklib.errors import InvalidInput, Refused
from ptkstore.api.views import ProfileView
from ptkstore.drawing.profile_svg import document
from ptkstore.drawing.profile_text import profile_text
from ptkstore.drawing.research_svg import research_svg

GRID = privacy_levels(1)


def points(samples: dict[str, int]) -> list[Point]:
    return [
        Point(Fraction(level), n, n, ((max(1, n // 2), 3), (n, 3))) for level, n in samples.items()
    ]


class TestCurve:
    @pytest.mark.parametrize(("a", "c"), [(100, 0), (0, 50), (200, 30), (10, 1000)])
    def test_the_form_is_found_where_it_holds(self, a: int, c: int) -> None:
        found = fit(
            points({level: round(a + c / float(level)) for level in ("0.01", "0.05", "0.2", "1")})
        )
        assert found is not None
        assert found.form == FORMS[0]
        for level in GRID:
            assert found.at(level) == pytest.approx(a + c / float(level), rel=0.05)

    def test_other_shapes_are_joined_and_fall(self) -> None:
        found = fit(points({"0.01": 100_000, "0.1": 60, "1": 50}))
        assert found is not None
        assert found.form == FORMS[1]
        heights = [found.at(level) for level in GRID]
        assert heights == sorted(heights, key=lambda one: -(one or 0))

    def test_nothing_is_claimed_below_the_lowest_level(self) -> None:
        found = fit(points({"0.1": 60, "1": 50}))
        assert found is not None
        assert found.at(Fraction(1, 20)) is None
        assert found.band(Fraction(1, 20)) is None
        assert fit([]) is None

    @given(st.lists(st.integers(1, 10**7), min_size=1, max_size=6))
    def test_any_points_give_a_falling_curve_within_its_band_and_below_what_was_witnessed(
        self, samples: list[int]
    ) -> None:
        found = fit(points({f"{k + 1}/10": n for k, n in enumerate(samples)}))
        assert found is not None
        heights = [found.at(point.level) or 0.0 for point in found.points]
        assert all(one >= other * (1 - 1e-9) for one, other in pairwise(heights))
        for point, height in zip(found.points, heights, strict=True):
            low, high = found.band(point.level) or (0, 0)
            assert low <= height <= high
            assert (found.safe(point.level) or 0) >= point.samples * (1 - 1e-9)


class TestBand:
    """Looks that are drawn from the model itself: the band holds the truth as often as it says, and
    is not idle.
    """

    places = (1.0, 2.2, 4.6, 10.0)

    def drawn(self, rng: np.random.Generator, a: float, c: float) -> list[Try]:
        tries = []
        for place in self.places:
            size, passed = 4, False
            while not passed:
                missed = rng.random(3) < MISSED ** (size / (a + c * place))
                passed = not missed.any()
                tries.append(Try(place, size, 3, passed))
                size *= 2
        return tries

    @pytest.mark.parametrize(("a", "c"), [(0, 100), (200, 0), (100, 50)])
    def test_it_holds_the_truth(self, a: int, c: int) -> None:
        rng = np.random.default_rng(a)
        inside = np.zeros(len(self.places))
        widths = []
        for _ in range(150):
            found = unrefuted_lines(self.drawn(rng, a, c))
            ends = [found.ends(place) for place in self.places]
            inside += [
                low / SLACK <= a + c * place <= high
                for place, (low, high) in zip(self.places, ends, strict=True)
            ]
            widths += [high / low * SLACK for low, high in ends]
        assert (inside >= 0.93 * 150).all(), inside
        assert np.median(widths) < 8

    def test_one_curve_up_or_down(self) -> None:
        rng = np.random.default_rng(1)
        inside = 0
        for _ in range(150):
            tries = self.drawn(rng, 0, 100)
            low, high = unrefuted_heights(tries, [100 * one.place for one in tries])
            inside += low / SLACK <= 1 <= high
        assert inside >= 0.92 * 150

    def test_a_lucky_guess_refutes_nothing(self) -> None:
        tries = [one for one in self.drawn(np.random.default_rng(2), 0, 1000) if one.place > 1]
        lucky = [*tries, Try(1.0, 4, 3, passed=True)]
        assert unrefuted_lines(lucky).ends(10.0)[1] > unrefuted_lines(tries).ends(10.0)[1] / 2


class TestGrid:
    def test_the_ends_are_among_the_chosen(self) -> None:
        found = chosen(GRID, 4)
        assert (len(found), found[0], found[-1]) == (4, GRID[0], GRID[-1])
        assert chosen(GRID, 99) == GRID
        assert chosen(GRID, 1) == (GRID[-1],)
        assert max(chosen(GRID, 4, highest=Fraction(1, 2))) <= Fraction(1, 2)

    def test_refused(self) -> None:
        with pytest.raises(InvalidInput):
            chosen(GRID, 0)
        with pytest.raises(InvalidInput):
            chosen(GRID, 2, highest=Fraction(1, 1000))

    def test_lower_levels_begin_at_half_of_what_the_highest_needs(self) -> None:
        assert (first_size(None), first_size(1), first_size(100)) == (0, 1, 50)


class TestReuse:
    reached = LevelResult(
        Fraction(1, 10),
        "REACHED",
        400,
        400,
        350,
        Fraction(1, 10),
        looks=(Look(100, 0.2, 16, 0.01), Look(200, 0.12, 16, 0.01), Look(400, 0.08, 16, 0.01)),
    )
    above = LevelResult(Fraction(1, 10), "RISK_ABOVE_TARGET")

    def test_a_witness_holds_for_looser_targets_and_a_finding_for_tighter_ones(self) -> None:
        target = Fraction(1, 10)
        assert reused([self.reached], target, target / 2) == {}
        looser = reused([self.reached], target, 2 * target)[Fraction(1, 10)]
        assert (looser.samples, looser.estimate, looser.charged) == (400, 200, ())
        assert reused([self.above], target, target / 2) != {}
        assert reused([self.above], target, 2 * target) == {}

    def test_the_key_is_public_and_the_same_for_all_targets(self) -> None:
        one = cache_key("mean", {"a": 1}, "rides", "event", ProfileTerms.of("0.1", 1))
        assert one == cache_key("mean", {"a": 1}, "rides", "event", ProfileTerms.of("0.2", 1))
        assert one != cache_key("mean", {"a": 2}, "rides", "event", ProfileTerms.of("0.1", 1))
        assert one != cache_key(
            "mean", {"a": 1}, "rides", "event", ProfileTerms.of("0.1", 1, records_per_unit=2)
        )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"config_version": 2}, "CONFIG_CHANGED"),
        ({"target": 0.2}, "TARGET_CHANGED"),
        ({"now_ms": 10**6}, "TOO_OLD"),
        ({"dp_records": [900, 2500, 2600, 2700]}, "RECORDS_DRIFTED"),
        ({"dp_records": [300, 200, 100]}, "RECORDS_DRIFTED"),
        ({"dp_records": [2500, 900, 2600]}, ""),
        ({"dp_losses": [0.3, 0.3, 0.3]}, "LOSS_DRIFTED"),
        ({"dp_losses": [0.3, 0.1, 0.3]}, ""),
    ],
)
def test_a_profile_grows_old(changes: dict[str, object], reason: str) -> None:
    given_values = {
        "now_ms": 100,
        "max_age_ms": 1000,
        "config_version": 1,
        "target": 0.1,
        "promised": Fraction(1, 5),
    }
    made = Made(at_ms=0, config_version=1, target=0.1, dp_records=1000)
    assert stale(made, **(given_values | changes)) == reason  # type: ignore[arg-type]


def test_pictures() -> None:
    profile = Profile(GRID, (None, *range(900, 0, -100)), Fraction(1, 10), Fraction(19, 20))
    text = profile_text(profile)
    assert "not reached" in text
    assert "900" in text
    assert len(text.splitlines()) == 1 + len(GRID)
    levels = tuple(str(one) for one in (0.01, 0.1, 1))
    measured = ({"level": "0.1", "band": (0, 900)}, {"level": "1", "band": (50, 200)})
    svg = document(
        ProfileView("a < b", "ACTIVE", "measured", levels, (None, 400, 90), measured=measured)
    )
    root = ElementTree.fromstring(svg)
    dots = [one for one in root.iter() if one.get("class") == "dot"]
    assert len(dots) == 2
    assert 'class="band"' in svg
    assert "a &lt; b: samples by epsilon (measured)" in svg
    nothing = document(ProfileView("a", "ACTIVE", "none", ("1",), (None,)))
    ElementTree.fromstring(nothing)
    assert "no level is reached" in nothing


def test_a_research_profile_takes_public_data_only() -> None:
    one = problem("mean", 0.02)
    table = pa.Table.from_batches([one.draw(np.random.default_rng(0), 3000)])
    options = {"samples": (10, 300), "levels": ("0.1", "1"), "repeats": 5}
    found = research_profile(one.ptk, table, **options)  # type: ignore[arg-type]
    assert [(point.epsilon, point.samples) for point in found] == [
        (0.1, 10),
        (0.1, 300),
        (1.0, 10),
        (1.0, 300),
    ]
    assert found[-1].loss == pytest.approx(0.02, abs=0.01)
    svg = research_svg(found, title="mean")
    assert [one.tag for one in ElementTree.fromstring(svg).iter()].count(
        "{http://www.w3.org/2000/svg}circle"
    ) == len(found)
    ElementTree.fromstring(research_svg([], title="nothing"))
    with pytest.raises(Refused) as refused:
        research_profile(one.ptk, table, stream="rides", **options)  # type: ignore[arg-type]
    assert refused.value.reason == "RESEARCH_REFUSED"
    with pytest.raises(InvalidInput):
        research_profile(one.ptk, table, samples=(), levels=("1",))
