"""The Additive PTK: what it learns, how shapes are smoothed, rules for odd values, windows, names
and refusals.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib import registry
from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.errors import InvalidInput
from ptklib.ptks.additive import Additive
from ptklib.ptks.additive.link import link_of
from ptklib.ptks.additive.smoothing import _VARIANCES, odds_of, smoothed
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.binned.target import Classes
from ptklib.testing.noise import SeededSource, planted_noise

AGE = Number(column="age", lower=0, upper=80, bins=8)
CITY = Categories(column="city", values=("a", "b", "c", "d"))
FLOOR = IntegerRange(column="floor", first=0, last=5)
ROWS = 20_000


def make(**options: Any) -> Additive:
    given: dict[str, Any] = {
        "inputs": (AGE, CITY, FLOOR),
        "label": "y",
        "classes": ("no", "yes"),
        **options,
    }
    if "lower" in given:
        given["classes"] = None
    return Additive(**given)


def odds(age: Any, city: Any) -> Any:
    """One in seven says yes; the old more often, most of all in d."""
    per_city = np.array([-1.0, 0.0, 0.5, 1.5])
    return -2.5 + 2 * np.sin(age / 40) + per_city["abcd".index(city)]


def people(rows: int, *, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    age = generator.uniform(0, 80, rows)
    city = generator.choice(list("abcd"), rows, p=[0.2, 0.4, 0.3, 0.1])
    score = np.array([odds(*one) for one in zip(age, city, strict=True)])
    yes = generator.uniform(0, 1, rows) < 1 / (1 + np.exp(-score))
    pay = 20 + 5 * score + generator.normal(0, 2, rows)
    body = {"age": age, "city": city, "floor": generator.integers(0, 6, rows), "pay": pay}
    return pa.table({**body, "y": np.where(yes, "yes", "no")})


PEOPLE, OTHERS = people(ROWS), people(10_000, seed=2)
YES = OTHERS.column("y").to_numpy() == "yes"


def train(
    ptk: Additive, table: pa.Table = PEOPLE, epsilon: Any = 1, *, seed: int = 5, **options: Any
) -> dict[str, Any]:
    delta = "1e-6" if ptk.tags.needs_delta else 0
    with planted_noise():
        source = SeededSource(seed)
        given = {"epsilon": epsilon, "delta": delta, "noise": source, **options}
        return dict(ptk.train_dp(table.to_batches(), **given))


def log_loss(probability: Any, yes: Any = YES) -> float:
    right = np.where(yes, probability, 1 - probability)
    return float(-np.log(right).mean())


CONSTANT = log_loss(np.full(len(YES), YES.mean()))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_log_loss_is_better_than_a_constant_and_improves_with_epsilon(mechanism: Any) -> None:
    ptk = make(mechanism=mechanism)
    losses = []
    for epsilon in ("0.1", "0.3", "1", "3", "100"):
        found = [
            ptk.features(train(ptk, epsilon=epsilon, seed=seed), OTHERS)["y_additive_prediction"]
            for seed in range(4)
        ]
        losses.append(np.mean([log_loss(one.to_numpy()) for one in found]))
    assert losses[0] < CONSTANT - 0.02
    # 0.0015 is what four seeds may differ by where noise hardly matters any more.
    assert np.all(np.diff(losses) < 0.0015), losses
    truth = [
        odds(*one)
        for one in zip(OTHERS["age"].to_pylist(), OTHERS["city"].to_pylist(), strict=True)
    ]
    assert losses[-1] < log_loss(1 / (1 + np.exp(-np.array(truth)))) + 0.005


def test_labels_that_no_input_explains_cost_next_to_nothing() -> None:
    shuffled = PEOPLE.set_column(
        4, "y", PEOPLE["y"].take(np.random.default_rng(0).permutation(ROWS))
    )
    for epsilon in ("0.1", "1", "10"):
        ptk = make()
        made = ptk.features(train(ptk, shuffled, epsilon), OTHERS)
        assert log_loss(made["y_additive_prediction"].to_numpy()) < CONSTANT + 0.01


@pytest.mark.parametrize("rows", [0, 50])
def test_few_records_give_a_cautious_model(rows: int) -> None:
    """Whatever the noise says, a model of nothing is no surer than that."""
    for seed in range(5):
        ptk = make()
        made = ptk.features(train(ptk, PEOPLE.slice(0, rows), "0.1", seed=seed), OTHERS)
        assert log_loss(made["y_additive_prediction"].to_numpy()) < 1.1


def test_shapes_are_those_of_the_data() -> None:
    ptk = make()
    shapes = ptk.shapes(train(ptk, epsilon=20)).to_pydict()
    assert list(dict.fromkeys(shapes["input"])) == ["age", "city", "floor"]
    assert shapes["bin"][:3] == ["0 to 10", "10 to 20", "20 to 30"]
    assert shapes["bin"][8:15] == ["unknown", "a", "b", "c", "d", "unknown", "0"]
    found = dict(zip(zip(shapes["input"], shapes["bin"], strict=True), shapes["term"], strict=True))
    assert found["city", "d"] - found["city", "a"] == pytest.approx(2.5, abs=0.25)
    assert found["age", "60 to 70"] - found["age", "0 to 10"] == pytest.approx(
        2 * (np.sin(65 / 40) - np.sin(5 / 40)), abs=0.25
    )
    assert all(abs(found["floor", str(floor)]) < 0.1 for floor in range(6))
    held = dict(
        zip(zip(shapes["input"], shapes["bin"], strict=True), shapes["records"], strict=True)
    )
    assert held["city", "b"] == pytest.approx(0.4 * ROWS, rel=0.05)
    assert held["city", "unknown"] == pytest.approx(0, abs=20)


def test_base_and_terms_sum_to_the_score_and_the_score_makes_the_prediction() -> None:
    ptk = make()
    arrays = train(ptk)
    made = ptk.features(arrays, OTHERS)
    assert made.column_names == [
        *("y_additive_prediction", "y_additive_score"),
        *("y_additive_term_age", "y_additive_term_city", "y_additive_term_floor"),
    ]
    prediction, score, *terms = (column.to_numpy() for column in made.columns)
    np.testing.assert_allclose(arrays["base"][0] + sum(terms), score, atol=1e-12)
    np.testing.assert_allclose(prediction, 1 / (1 + np.exp(-score)), rtol=1e-12)
    assert len(set(score.tolist())) > 100
    loss = ptk.loss(arrays, OTHERS.to_batches())
    np.testing.assert_allclose(loss, np.square(YES - prediction), atol=1e-12)


def test_outputs_can_be_the_prediction_or_the_terms_alone() -> None:
    whole = make(prefix="p")
    arrays = train(whole)
    made = whole.features(arrays, OTHERS)
    for output, columns in (("prediction", made.columns[:2]), ("terms", made.columns[2:])):
        ptk = make(prefix="p", output=output)
        part = ptk.features(arrays, OTHERS)
        assert part.columns == columns
        assert tuple(part.column_names) == ptk.feature_names()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_number_between_bounds_is_learned(mechanism: Any) -> None:
    ptk = make(label="pay", lower=0, upper=40, mechanism=mechanism)
    pay = OTHERS["pay"].to_numpy()
    losses = []
    for epsilon in ("0.1", "1", "10"):
        made = ptk.features(train(ptk, epsilon=epsilon), OTHERS)
        assert made.column_names[0] == "pay_additive_prediction"
        assert "pay_additive_score" not in made.column_names
        losses.append(float(np.square(made.column(0).to_numpy() - np.clip(pay, 0, 40)).mean()))
    assert losses == sorted(losses, reverse=True)
    # The variance of the noise is 4, and bins of the age add a little.
    assert losses[0] < pay.var() / 2
    assert losses[-1] < 5
    arrays = train(ptk)
    terms = [column.to_numpy() for column in ptk.features(arrays, OTHERS).columns[1:]]
    np.testing.assert_allclose(
        np.clip(40 * arrays["base"][0] + sum(terms), 0, 40),
        ptk.features(arrays, OTHERS).column(0).to_numpy(),
        atol=1e-9,
    )


def test_missing_and_unknown_inputs_have_a_bin_of_their_own() -> None:
    ptk = make()
    arrays = train(ptk)
    odd = pa.table(
        {
            "age": pa.array([None, float("nan"), -5.0, 500.0, float("inf")]),
            "city": pa.array(["z", None, "a", "a", "a"]),
            "floor": pa.array([7, None, 0, 0, 0]),
        }
    )
    made = ptk.features(arrays, odd)
    shapes = ptk._split(ptk._terms(arrays))
    age = made["y_additive_term_age"].to_numpy()
    assert age.tolist() == [*[shapes[0][8]] * 2, shapes[0][0], *[shapes[0][7]] * 2]
    assert made["y_additive_term_city"].to_pylist()[:2] == [shapes[1][4]] * 2
    assert made["y_additive_term_floor"].to_pylist()[:2] == [shapes[2][6]] * 2
    unlabelled = PEOPLE.slice(0, 4).set_column(4, "y", pa.array(["no", None, "yes", "maybe"]))
    assert (ptk.loss(arrays, unlabelled.to_batches()) > 0).tolist() == [True, False, True, False]


def test_windows_add_to_what_was_learned() -> None:
    ptk = make(mechanism="gaussian")
    alone, together = [], []
    for seed in range(6):
        state = train(ptk, PEOPLE.slice(0, 2_000), "0.1", seed=seed)
        alone.append(ptk.eval(state, OTHERS.to_batches()))
        for window in range(1, 6):
            more = PEOPLE.slice(2_000 * window, 2_000)
            state = train(ptk, more, "0.1", seed=10 * window + seed, previous=state)
        assert state["windows"].tolist() == [6]
        together.append(ptk.eval(state, OTHERS.to_batches()))
    assert np.mean(together) < np.mean(alone) - 0.004
    assert max(together) < np.mean(alone)


def test_a_window_counts_as_much_as_each_before() -> None:
    """The mean of the windows' models, in whole steps."""
    ptk = make()
    first = train(ptk)
    first["windows"] = np.array([3])
    again = train(ptk, people(ROWS, seed=8), "50", seed=6, previous=first)
    new = train(
        ptk, people(ROWS, seed=8), "50", seed=6, previous={**first, "windows": np.array([0]) + 1}
    )
    moved = again["shapes"] - first["shapes"]
    # Smoothing knows how many windows there are: the two are near, not equal.
    np.testing.assert_allclose(moved, (new["shapes"] - first["shapes"]) / 2, atol=0.2)
    assert np.abs(moved).max() > 0.01
    assert ptk.tags.mergeable is ptk.tags.combines is False


FLAT = -0.5 * np.log(_VARIANCES)


class TestSmoothing:
    def test_what_was_seen_without_noise_stays(self) -> None:
        seen = np.array([0.5, -0.2, 1.0, 0.3])
        for ordered in (True, False):
            made = smoothed(seen, np.full(4, 1e-9), FLAT, ordered=ordered, scale=1.0)
            np.testing.assert_allclose(made, seen, atol=1e-5)

    def test_pure_noise_is_hardly_a_shape(self) -> None:
        seen = np.random.default_rng(1).normal(0, 10, 17)
        for ordered in (True, False):
            made = smoothed(seen, np.full(17, 100.0), FLAT, ordered=ordered, scale=1.0)
            assert np.abs(made).max() < 0.3

    @pytest.mark.parametrize("ordered", [True, False])
    def test_one_bin_far_out_is_no_shape_unless_it_is_plain_to_see(self, ordered: bool) -> None:
        seen = np.zeros(17)
        seen[4] = 30.0
        made = smoothed(seen, np.full(17, 16.0), FLAT, ordered=ordered, scale=1.0)
        assert np.abs(made).max() < 0.5
        seen[4] = 6.0
        made = smoothed(seen, np.full(17, 0.01), FLAT, ordered=ordered, scale=1.0)
        assert made[4] > 5.8

    @pytest.mark.parametrize("ordered", [True, False])
    def test_it_is_the_mean_of_the_model_that_the_module_describes(self, ordered: bool) -> None:
        """By matrices, of all bins at once, where the steps are one after the other."""
        generator = np.random.default_rng(3)
        variance = generator.uniform(0.01, 2, 9)
        seen = generator.normal(0, 1, 9)
        place = np.arange(8)
        means, weights = [], []
        for step in 0.5 * _VARIANCES:
            prior = np.zeros((9, 9))
            prior[:8, :8] = 0.5 + step * np.minimum(place[:, None], place)
            prior[8, 8] = 0.5 * 0.3
            model = prior if ordered else step * np.eye(9)
            total = model + np.diag(variance)
            means.append(model @ np.linalg.solve(total, seen))
            judged = slice(0, 8) if ordered else slice(0, 9)
            own, part = total[judged, judged], seen[judged]
            evidence = -np.linalg.slogdet(own)[1] / 2 - part @ np.linalg.solve(own, part) / 2
            weights.append(np.exp(evidence) / np.sqrt(step))
        wanted = np.average(means, axis=0, weights=weights)
        made = smoothed(seen, variance, FLAT, ordered=ordered, scale=0.5)
        np.testing.assert_allclose(made, wanted, atol=1e-12)

    def test_inputs_that_are_plain_to_see_make_a_faint_one_likelier(self) -> None:
        generator = np.random.default_rng(4)
        variance = np.full(9, 2.0)
        faint = generator.normal(0, 1, 9) + generator.normal(0, 2**0.5, 9)
        sizes = []
        for others in (0.02, 1.0):
            plain = [(generator.normal(0, others, 9), np.full(9, 0.01), False) for _ in range(12)]
            odds = odds_of(plain, 1.0)
            made = smoothed(faint, variance, odds, ordered=False, scale=1.0)
            sizes.append(float(np.abs(made).mean()))
        assert sizes[1] > 3 * sizes[0]
        # Of no inputs, the guess.
        guess = odds_of([], 1.0) - FLAT
        np.testing.assert_allclose(guess, guess[0], atol=1e-12)


def test_rounds_follow_from_the_budget_alone_and_states_look_the_same() -> None:
    plans = {
        mechanism: [
            make(mechanism=mechanism)._plan(epsilon, "1e-6", 1).rounds
            for epsilon in ("0.1", "0.5", "1", "3")
        ]
        for mechanism in ("laplace", "gaussian")
    }
    assert plans == {"laplace": [1, 2, 3, 5], "gaussian": [3, 4, 6, 10]}
    ptk = make()
    shapes = [
        {name: array.shape for name, array in train(ptk, PEOPLE.slice(0, 100), level).items()}
        for level in ("0.1", "3")
    ]
    assert shapes[0] == shapes[1]


HOUR, DAY = TimePart(column="at", part="hour"), TimePart(column="at", part="weekday")


def test_terms_have_names_of_their_own() -> None:
    edges = Bins(column="age", edges=(0, 18, 80))
    ptk = make(inputs=(AGE, edges, HOUR, DAY, CITY), output="terms", prefix="p")
    assert ptk.feature_names() == (
        *("p_term_age_number", "p_term_age_bins"),
        *("p_term_at_hour", "p_term_at_weekday", "p_term_city"),
    )
    bins = ptk.shapes(train(ptk, pa.Table.from_batches([ptk.example(50)])))["bin"].to_pylist()
    assert bins[9:12] == ["0 to 18", "18 to 80", "unknown"]
    assert {"00h", "23h", "Monday", "Sunday"} <= set(bins)


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {
            "inputs": (
                *(AGE, Bins(column="age", edges=(0, 18, 80))),
                Number(column="age_number", lower=0, upper=1),
            )
        },
        "names of their own",
    ),
    ({"classes": ("a", "b", "c")}, "take a forest for more"),
    ({"classes": ("a",)}, "two or more"),
    ({"classes": None}, "classes, or lower and upper"),
    ({"lower": 0}, "classes, or lower and upper"),
    ({"inputs": ()}, "inputs must be 1 to 256"),
    ({"inputs": (AGE, AGE)}, "inputs must differ"),
    ({"inputs": (AGE,), "label": "age"}, "must not be an input too"),
    ({"rounds": 0}, "rounds must be 1 to 64"),
    ({"rounds": 65}, "rounds must be 1 to 64"),
    (
        {"inputs": tuple(IntegerRange(column=f"x{k}", first=0, last=4_000) for k in range(5))},
        "16384 bins in all",
    ),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_configurations_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        make(**options)
    assert caught.value.reason == "CONFIG_INVALID"


def test_states_of_something_else_are_refused() -> None:
    ptk = make()
    arrays = train(ptk, PEOPLE.slice(0, 100))
    ptk.validate(arrays)
    for name, wrong in (
        ("shapes", arrays["shapes"] + 9),
        ("base", np.array([-8.5])),
        ("windows", np.array([0])),
        ("variance", np.array([0.0])),
        ("tables", arrays["tables"] + 2**61),
    ):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            ptk.validate({**arrays, name: wrong})


def test_it_is_an_installed_kind_with_a_form_in_json() -> None:
    ptk = make(mechanism="gaussian", rounds=4)
    assert registry.make("additive", ptk.as_json()) == ptk
    assert Additive.json_schema()["required"] == ["inputs", "label"]
    assert ptk.cost(1, "1e-6") == make(mechanism="gaussian").cost(1, "1e-6")
    assert link_of(Classes("y", ("a", "b"))) is ptk._link
    assert make().cost(Fraction(1, 3)).basic() == (Fraction(1, 3), Fraction(0))
