"""The frame of the benchmarks: what is missing is broken, limits cannot be loosened, leads are
computed as they are told.
"""

from __future__ import annotations

import json
import math
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import accuracy, additive, ptks, servers
from benchmarks._accuracy import (
    embeddings,
    encodings,
    environment,
    groups,
    pulling,
    ranks,
    tasks,
)
from benchmarks._accuracy.binary import BinaryTask, binary_tasks
from benchmarks._accuracy.scores import Scale
from benchmarks.bars import Bar, Report, at_most, broken


def quiet(_: str) -> None:
    pass


def plant(monkeypatch: pytest.MonkeyPatch, limit: float, pairs: list[tuple[float, float]]) -> None:
    """Only the kind ``made``, with these pairs of seconds."""
    module = types.ModuleType("benchmarks.ptk_speed.made")

    def rounds(_: object) -> Iterator[tuple[float, float]]:
        yield from pairs

    module.__dict__.update(WHAT="ours / theirs", LIMIT=limit, rounds=rounds)
    monkeypatch.setitem(sys.modules, "benchmarks.ptk_speed.made", module)
    monkeypatch.setattr(ptks, "kinds", lambda: ["made"])


class TestSpeed:
    def test_every_required_kind_is_asked_for(self) -> None:
        assert set(ptks.REQUIRED) <= set(ptks.kinds())

    def test_a_kind_without_a_module_is_broken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ptks, "kinds", lambda: ["nowhere"])
        (bar,) = ptks.run(quiet).bars
        assert not bar.holds
        assert "nowhere: ModuleNotFoundError" in bar.what

    @pytest.mark.parametrize(
        ("pairs", "holds"),
        [
            ([(1.0, 1.0)] * 5, True),
            ([(1.0, 1.0)] * 4, False),
            ([(1.4, 1.0)] * 3 + [(9.0, 1.0)] * 2, True),
            ([(1.4, 1.0)] * 2 + [(1.6, 1.0)] * 3, False),
        ],
        ids=["as fast", "too few rounds", "the median counts", "too slow"],
    )
    def test_the_median_of_the_ratios_is_judged(
        self, pairs: list[tuple[float, float]], holds: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plant(monkeypatch, 1.5, pairs)
        (bar,) = ptks.run(quiet).bars
        assert bar.holds == holds

    def test_a_module_cannot_loosen_its_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plant(monkeypatch, 9.0, [(2.0, 1.0)] * 5)
        assert ptks.run(quiet).bars[0].holds
        monkeypatch.setitem(ptks.REQUIRED, "made", 1.5)
        assert not ptks.run(quiet).bars[0].holds

    def test_one_that_fails_does_not_hide_the_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plant(monkeypatch, 1.5, [(1.0, 0.0)] * 5)
        monkeypatch.setattr(ptks, "kinds", lambda: ["nowhere", "made"])
        plant_good = sys.modules["benchmarks.ptk_speed.made"]
        plant_good.__dict__["rounds"] = lambda _: iter([(1.0, 1.0)] * 5)
        first, second = ptks.run(quiet).bars
        assert (first.holds, second.holds) == (False, True)


class TestFrame:
    def test_packages_are_no_benchmarks(self) -> None:
        found = command.names()
        assert {"accuracy", "chaos", "ptks", "window"} <= set(found)
        assert not {"ptk_speed", "_accuracy", "bars", "__main__"} & set(found)

    def test_what_could_not_be_measured_is_null_and_never_holds(self) -> None:
        bar = broken("x", 1.5)
        assert not bar.holds
        assert json.loads(json.dumps(bar.as_json(), allow_nan=False))["value"] is None

    def test_the_data_folder_reaches_those_that_ask_for_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seen: list[object] = []

        def with_data(_: object, data: Path | None = None) -> Report:
            seen.append(data)
            return Report(bars=[at_most("x", 1, 2)])

        monkeypatch.setattr(accuracy, "run", with_data)
        monkeypatch.setattr(ptks, "run", lambda _: Report(bars=[at_most("x", 3, 2)]))
        monkeypatch.delenv("SAGE_DATA", raising=False)
        monkeypatch.setattr(
            sys, "argv", ["benchmarks", "accuracy", "--json", "--data", str(tmp_path)]
        )
        assert command.main() == 0
        monkeypatch.setattr(sys, "argv", ["benchmarks", "accuracy", "--json"])
        assert command.main() == 0
        monkeypatch.setattr(sys, "argv", ["benchmarks", "ptks", "--json", "--data", str(tmp_path)])
        assert command.main() == 1
        assert seen == [tmp_path, None]
        monkeypatch.setattr(
            sys, "argv", ["benchmarks", "accuracy", "--data", str(tmp_path / "nowhere")]
        )
        with pytest.raises(SystemExit):
            command.main()
        assert "--data must be a folder" in capsys.readouterr().err


def compared(ours: list[float], theirs: list[float], method: str = "forest") -> accuracy.Compared:
    task = tasks.Task(
        method=method,
        data="d",
        values=np.zeros((1, 1)),
        lower=np.zeros(1),
        upper=np.ones(1),
        size=2,
    )
    return accuracy.Compared(
        task=task, epsilon=1.0, ours=np.array(ours), theirs=np.array(theirs), exact=0.0
    )


def held(one: accuracy.Compared) -> list[bool]:
    bars: list[Bar] = accuracy._bars([one])
    return [bar.holds for bar in bars]


class TestPulling:
    def test_a_table_is_judged_by_its_worst_epsilon_and_can_fail(self) -> None:
        def made(name: str, epsilon: float, served: float, spread: float = 0.0) -> pulling.Pulled:
            noise = np.array([1.0, -1.0] * 50)
            squares = {
                "served": served**2 + spread * noise,
                "plain": np.full(100, 4.0),
                "all": np.ones(100),
            }
            return pulling.Pulled(name=name, epsilon=epsilon, by_group=squares, by_record=squares)

        told = [made("a", 0.1, 1.0), made("a", 1.0, 1.05), made("b", 0.1, 1.01)]
        assert [bar.holds for bar in pulling.bars(told, "means")] == [False, True]
        assert [line["best other"] for line in pulling.figures(told)] == ["all"] * 3
        assert [one.verdict for one in told] == ["within", "above", "within"]
        # The limit is one standard error below: more trainings are asked for.
        noisy = made("c", 0.1, 1.04, spread=0.4)
        assert noisy.ratio_error == pytest.approx(0.4 / np.sqrt(99) / (2 * 1.04))
        assert (noisy.verdict, noisy.is_settled) == ("unclear", False)
        (told_all,) = pulling.summary([*told, noisy], "means")
        assert [told_all[name] for name in ("cases", "within", "unclear", "above")] == [4, 2, 1, 1]
        assert told_all["not within"] == "a at 1.0: 1.050±0.000; c at 0.1: 1.040±0.019"

    def test_noise_that_both_ways_share_does_not_widen_the_interval_of_a_ratio(self) -> None:
        luck = np.random.default_rng(1).exponential(1, 200)
        squares = {"served": 0.9 * luck, "plain": luck, "all": np.full(200, 9.0)}
        one = pulling.Pulled(name="a", epsilon=1, by_group=squares, by_record=squares)
        assert one.ratio == pytest.approx(np.sqrt(0.9))
        assert one.ratio_error == pytest.approx(0, abs=1e-12)

    def test_errors_are_those_of_the_features_that_a_ptk_serves(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pulling, "_SEEDS", 4)
        monkeypatch.setattr(pulling, "_MOST", 4)
        table = groups.groups(None)[0]
        told = pulling.means(table)
        assert [one.served for one in told[:2]] == ["served", "no promise"]
        found = {
            one.epsilon: {way: np.sqrt(some.mean()) for way, some in one.by_group.items()}
            for one in told
        }
        assert list(found) == list(pulling.EPSILONS)
        # Of 250 records a group, noise of two corners: 1.4 / (epsilon n), and half of that in the middle.
        assert 0.7 * 0.04 < found[0.1]["plain"] < 1.5 * 0.04
        assert found[3.0]["plain"] < found[0.1]["plain"] / 15
        assert found[0.1]["served"] < found[0.1]["plain"]
        # A sum and a count at half of epsilon each: about twice the noise, and no bias.
        assert 1.5 < found[1.0]["OpenDP"] / found[1.0]["plain"] < 4
        assert "OpenDP" not in pulling._SERVED

    def test_a_textbook_mechanism_is_as_near_as_theory_says_and_the_worst_case_is_judged(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ranks, "_DRAWS", 2_000)
        values = np.linspace(0, 99.9, 1000)
        one = ranks.measured("even", values, 0.5, 1.0)
        # Two-sided geometric draws with weights exp(-records) are 0.85 records off on average.
        assert one.textbook.mean() == pytest.approx(0.00085, rel=0.1)
        assert one.ratio == pytest.approx(1, abs=4 * one.ratio_error)
        assert one.tree.mean() > 3 * one.textbook.mean()
        worse = replace(one, records=300, chosen=1.1 * one.chosen)
        (bar,) = ranks._bars([one, worse])
        assert "300 records" in bar.what
        assert not bar.holds


class TestAccuracy:
    def test_a_lead_is_a_difference_in_standard_errors(self) -> None:
        one = compared([1.0, 3.0], [4.0, 6.0])
        assert one.lead == pytest.approx(3 / math.sqrt(2))
        assert one.gain == pytest.approx(0.6)
        assert compared([1.0, 1.0], [1.0, 1.0]).lead == 0
        assert compared([1.0, 1.0], [2.0, 2.0]).lead == math.inf

    def test_better_and_as_good_hold_and_worse_does_not(self) -> None:
        noise = [0.0, 0.01, -0.01, 0.005, -0.005] * 4
        same = [1 + one for one in noise]
        assert held(compared([0.9 + one for one in noise], same)) == [True, True]
        assert held(compared([1.1 + one for one in noise], same)) == [False, False]
        # Worse by less than three standard errors: as good, but not better on average, unless both
        # are the same by design.
        close = [1.002 + one for one in noise]
        assert held(compared(close, same)) == [True, False]
        assert held(compared(close, same, "histogram")) == [True, True]

    def test_errors_are_those_of_the_exact_method_where_the_output_is(self) -> None:
        for task in tasks.tasks(None):
            if task.method in {"PCA", "histogram"}:
                scale = Scale(task)
                exact = scale.exact()
                rng = np.random.default_rng(0)
                if task.method == "PCA":
                    worse = rng.normal(0, 1, (task.size, task.values.shape[1]))
                else:
                    assert exact == 0
                    worse = np.zeros(task.size)
                assert scale.error(worse) > exact

    def test_data_sets_are_the_same_every_time_and_within_their_bounds(self) -> None:
        first, second = tasks.tasks(None), tasks.tasks(None)
        assert [one.name for one in first] == [one.name for one in second]
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one.values, other.values)
            assert np.all((one.values >= one.lower) & (one.values <= one.upper))

    def test_without_an_environment_the_benchmark_is_broken_and_says_why(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def not_ready(_: object) -> Path:
            raise environment.NotReady("no index")

        monkeypatch.setattr(environment, "python", not_ready)
        monkeypatch.setattr(embeddings, "report", lambda *_: Report())
        monkeypatch.setattr(encodings, "report", lambda *_: Report())
        monkeypatch.setattr(ranks, "report", lambda _: Report())
        monkeypatch.setattr(accuracy, "groups", lambda _: [])
        (bar,) = accuracy.run(quiet).bars
        assert not bar.holds
        assert "no index" in bar.what


def scores(
    task: BinaryTask, method: str, losses: list[float], *, area: float = 0.8
) -> list[additive.Scores]:
    """At each epsilon the mean of the log losses, as a part of that of the constant."""
    spread = np.array([-1e-3, 0.0, 1e-3])
    return [
        additive.Scores(
            task=task,
            method=method,
            epsilon=epsilon,
            areas=area + spread,
            losses=task.constant * loss + spread,
        )
        for epsilon, loss in zip(additive.EPSILONS, losses, strict=True)
    ]


class TestAdditive:
    def test_a_lead_is_a_difference_in_standard_errors(self) -> None:
        found = additive.lead(np.array([1.0, 3.0]), np.array([4.0, 6.0]))
        assert found == pytest.approx(3 / math.sqrt(2))
        assert additive.lead(np.array([2.0, 2.0]), np.array([1.0, 1.0])) == -math.inf

    def test_worse_than_a_constant_rising_and_behind_do_not_hold(self) -> None:
        task = binary_tasks(None)[0]
        good = [0.9, 0.8, 0.7, 0.7]

        def broken_bars(ours: list[float], theirs: list[float], area: float = 0.8) -> list[str]:
            method = "additive, gaussian"
            given = scores(task, method, ours, area=area) + scores(task, "interpret", theirs)
            return [bar.what.rpartition(": ")[2] for bar in additive.judged(given) if not bar.holds]

        assert broken_bars(good, good) == []
        words = {
            "constant": "lead over the constant in log loss, standard errors",
            "rises": "least lead of an epsilon over the one before, in log loss",
            "area": "lead over interpret in area, standard errors",
            "loss": "lead over interpret in log loss, standard errors",
        }
        assert broken_bars([1.1, 0.8, 0.7, 0.7], [1.2, 0.9, 0.9, 0.9]) == [words["constant"]]
        assert broken_bars([1.0001, 0.8, 0.7, 0.7], [1.2, 0.9, 0.9, 0.9]) == [words["constant"]]
        assert broken_bars([0.9, 0.8, 0.7, 0.8], [0.9] * 4) == [words["rises"]]
        assert broken_bars(good, [0.9, 0.8, 0.7, 0.6]) == [words["loss"]]
        assert broken_bars(good, good, area=0.7) == [words["area"]] * 4

    def test_what_is_handed_over_is_within_the_public_bounds(self) -> None:
        for task in binary_tasks(None):
            arrays, told = task.plain()
            assert arrays["values"].shape == (task.train.num_rows, len(task.inputs))
            for place, (lower, upper) in told["bounds"].items():
                column = arrays["values"][:, place]
                assert lower <= column.min() < column.max() <= upper
            assert 0 < task.truth.mean() < 0.5
            assert task.constant < math.log(2)


class TestServers:
    """Charges are counted from the journal, against what the blocks can carry."""

    @pytest.mark.parametrize(
        ("more", "found"),
        [(0, (8 * 3, 0, 0)), (2, (8 * 3 + 2, 2, 0)), (-1, (8 * 3 - 1, 0, 1))],
        ids=["exactly", "beyond", "short"],
    )
    def test_counting(self, more: int, found: tuple[int, int, int]) -> None:
        made: dict[str, object] = {
            "kind": "stream",
            "stream": "s",
            "filter": {"capacity": [10, 35, 100]},
        }
        # Three fit at the second order, fewer at the first; the third is not touched.
        charges = [
            {"kind": "reserve", "stream": "s", "demand": [10, 11, 0], "slices": [block]}
            for block in range(servers.BLOCKS)
            for _ in range(3 + (more if block == 0 else 0))
        ]
        assert servers.counted([made, *charges, {"kind": "retire", "stream": "s"}]) == found


class TestEmbeddings:
    """Beside biases: what is judged, from errors of three seeds at two levels of epsilon."""

    @pytest.mark.parametrize(
        ("ours", "held"),
        [
            ([[1.0, 1.01, 0.99], [0.8, 0.81, 0.79]], [True, True, True]),
            # Rises: beyond chance, and within it.
            ([[0.8, 0.81, 0.79], [0.9, 0.91, 0.89]], [False, True, True]),
            ([[0.8, 0.81, 0.79], [0.801, 0.811, 0.791]], [True, True, True]),
            ([[1.2, 1.21, 1.19], [0.5, 0.51, 0.49]], [True, False, True]),
            ([[1.02, 1.03, 1.01], [1.01, 1.02, 1.0]], [True, False, False]),
            # Within chance at each level, and beyond it in all together.
            ([[1.015, 1.025, 1.005], [1.015, 1.025, 1.005]], [True, True, False]),
        ],
    )
    def test_rises_and_errors_above_those_of_biases_do_not_hold(
        self, ours: list[list[float]], held: list[bool]
    ) -> None:
        errors, plain = [np.array(one) for one in ours], [np.ones(3), np.ones(3)]
        assert [bar.holds for bar in embeddings.bars_of("d", errors, plain, plain)] == held

    def test_biases_learn_offsets_and_noise_hides_them(self) -> None:
        pairs = next(iter(embeddings._invented()))
        plain = embeddings._biases(pairs, *pairs.parts())
        rng = np.random.default_rng(0)
        spread = float(np.std(pairs.values)) / 4
        assert plain(100.0, rng).min() < 0.85 * spread
        assert plain(0.01, rng).min() > 0.95 * spread
