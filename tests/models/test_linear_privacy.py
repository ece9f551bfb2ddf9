"""Linear regression: what it claims to spend, and the sensitivities behind the claim.

Audits of whole trainings, with half of the noise planted too, are in tests/auditing/test_kinds.py.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import dp_accounting
import numpy as np
import pyarrow as pa
import pytest
from dp_accounting.pld import PLDAccountant

from ptklib.auditing.tape import record, replay
from ptklib.columns.keys import Categories, IntegerRange
from ptklib.columns.numbers import Bounded
from ptklib.errors import InvalidInput
from ptklib.models.inputs import STEPS, Vector
from ptklib.models.linear import LinearRegression
from ptklib.models.linear.plans import AdasspPlan, BoostedPlan, MomentsPlan
from ptklib.models.linear.reading import LabelledRows
from ptklib.models.linear.structure import GRAIN, OFF, ON
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease

FAR = Bounded(column="far", lower=0, upper=10)
ZONE = Categories(column="zone", values=("north", "south", "west"))
HOUR = IntegerRange(column="hour", first=0, last=4)
LABEL: dict[str, Any] = {"label": "fare", "lower": 0, "upper": 50}
SHAPES: dict[str, dict[str, Any]] = {
    "numbers": {"inputs": (FAR, Bounded(column="wide", lower=-1, upper=1))},
    "listed": {"inputs": (ZONE, HOUR)},
    "mixed": {"inputs": (FAR, ZONE, HOUR)},
    "short": {"inputs": (FAR, ZONE, HOUR), "norm": 0.7},
    "no constant": {"inputs": (FAR, ZONE), "intercept": False},
    "unit": {"inputs": (FAR, ZONE), "scaling": "unit"},
}


def make(shape: str = "mixed", **options: Any) -> LinearRegression:
    return LinearRegression(**SHAPES[shape], **LABEL, **options)


@pytest.mark.parametrize("units", [1, 4])
@pytest.mark.parametrize("rounds", [None, 1, 13])
@pytest.mark.parametrize("epsilon", ["0.05", "1", "8"])
def test_boosting_costs_what_an_accountant_of_others_says(
    epsilon: str, rounds: int | None, units: int
) -> None:
    model = make(rounds=rounds)
    plan = model._plan(epsilon, "1e-6", units)
    assert isinstance(plan, BoostedPlan)
    releases = [plan.products, plan.label]
    releases += [plan.round_of(model._structure, most) for most in (4, 100, 1024)][:1] * (
        plan.rounds
    )
    accountant = PLDAccountant()
    for release in releases:
        accountant.compose(
            dp_accounting.GaussianDpEvent(float(release.sigma / release.sensitivity))
        )
    spent = accountant.get_epsilon(1e-6)
    assert spent <= float(epsilon) * (1 + 1e-3)
    assert spent > 0.99 * float(epsilon)
    claimed = model.cost(epsilon, "1e-6", records_per_unit=units).mu_squared()
    assert isinstance(claimed, Fraction)
    assert sum(Fraction(release.cost.mu_squared()) for release in releases) <= claimed


@pytest.mark.parametrize("most", [4, 37, 1024])
def test_every_round_has_the_noise_that_was_priced_whatever_it_clips_at(most: int) -> None:
    model = make()
    plan = model._plan(1, "1e-6", 2)
    assert isinstance(plan, BoostedPlan)
    release = plan.round_of(model._structure, most)
    assert release.cost.mu_squared() <= 1 / plan.multiplier**2


def test_the_other_mechanisms_cost_what_they_release() -> None:
    laplace = make(mechanism="laplace").cost("0.7")
    assert laplace.basic() == (Fraction("0.7"), Fraction(0))
    moments = make(mechanism="moments").cost(1, "1e-6")
    assert 0.999 < moments.epsilon("1e-6") <= 1 + 1e-9
    plan = make(mechanism="adassp")._plan(1, "1e-6", 1)
    assert isinstance(plan, AdasspPlan)
    accountant = PLDAccountant()
    for release in (plan.smallest, plan.products, plan.label):
        accountant.compose(
            dp_accounting.GaussianDpEvent(float(release.sigma / release.sensitivity))
        )
    claim = make(mechanism="adassp").cost(1, "1e-6").epsilon("1e-6")
    assert claim == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)
    assert claim < 1


def test_adassp_takes_more_noise_where_that_of_the_paper_is_too_little() -> None:
    cost = make(mechanism="adassp").cost(200, "1e-6")
    assert cost.epsilon("1e-6") <= 200


def records(shape: str, rows: int, seed: int) -> pa.RecordBatch:
    made = make(shape).example(rows, seed=seed)
    assert made is not None
    return made


def inputs_of(model: LinearRegression, batches: list[pa.RecordBatch], **options: Any) -> list[Any]:
    tape, _ = record(lambda: model.train_dp(batches, epsilon=1, **options))
    return list(tape.entries)


@pytest.mark.parametrize("mechanism", ["boosted", "moments", "laplace", "adassp"])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_no_record_moves_a_release_by_more_than_its_sensitivity(shape: str, mechanism: str) -> None:
    if mechanism == "adassp" and shape == "no constant":
        pytest.skip("it centres nothing")
    model = make(shape, mechanism=mechanism)
    rows = records(shape, 30, seed=3)
    delta = Fraction(0) if mechanism == "laplace" else Fraction(1, 10**6)
    longest = 0.0
    for seed in range(6):
        both = [rows, records(shape, 1, seed=seed)]

        def run(batches: list[pa.RecordBatch]) -> Any:
            return model.train_dp(batches, epsilon=1, delta=delta)

        tape, _ = record(lambda: run([rows]))
        other, _ = replay(tape, partial(run, both))
        for entry, again in zip(tape.entries, other.entries, strict=True):
            assert entry.mechanism == again.mechanism
            apart = np.ravel(entry.given).astype(object) - np.ravel(again.given).astype(object)
            if isinstance(entry.mechanism, LaplaceRelease):
                moved = Fraction(int(np.abs(apart).sum()))
                assert moved <= entry.mechanism.sensitivity
                share = float(moved / entry.mechanism.sensitivity)
            else:
                assert isinstance(entry.mechanism, GaussianRelease)
                square = int((apart * apart).sum())
                assert square <= entry.mechanism.sensitivity**2
                share = float(square / entry.mechanism.sensitivity**2) ** 0.5
            longest = max(longest, share)
    assert longest > 0.5


@pytest.mark.parametrize("shape", ["numbers", "listed", "mixed"])
def test_the_bound_of_products_is_that_of_the_longest_record(shape: str) -> None:
    """On a corner of the domain the bound is met, but for the weight of squares."""
    structure = make(shape)._structure
    corner: dict[str, Any] = {"far": [10.0], "wide": [1.0], "zone": ["west"], "hour": [4]}
    rows = structure.grains(structure.rows.steps(pa.RecordBatch.from_pydict(corner)))[0]
    above, right = structure.kept
    released = rows[above] * rows[right] * structure.weights
    square = float((released**2).sum())
    assert 0.97 * structure.weighted_square < square <= structure.weighted_square
    assert OFF**2 < 2 * ON**2


def test_what_is_not_released_follows_from_the_rest() -> None:
    structure = make("mixed")._structure
    rows = structure.grains(structure.rows.steps(records("mixed", 200, seed=1)))
    products = rows.T @ rows
    assert np.array_equal(
        structure.matrix(products[structure.kept] / GRAIN**2), products / GRAIN**2
    )
    short = make("short")._structure
    assert len(short.kept[0]) == len(structure.kept[0]) + 8


def test_a_label_that_is_missing_moves_nothing() -> None:
    model = make()
    rows = pa.Table.from_batches([records("mixed", 60, seed=1)])
    gone = np.arange(60) % 3 == 0
    labels = [
        None if no else value for value, no in zip(rows["fare"].to_pylist(), gone, strict=True)
    ]
    holes = rows.set_column(rows.schema.get_field_index("fare"), "fare", pa.array(labels))
    kept = rows.filter(pa.array(~gone)).combine_chunks()
    tape, _ = record(lambda: model.train_dp(holes.to_batches(), epsilon=1, delta="1e-6"))
    other, _ = replay(tape, lambda: model.train_dp(kept.to_batches(), epsilon=1, delta="1e-6"))
    for entry, again in zip(tape.entries, other.entries, strict=True):
        assert np.array_equal(entry.given, again.given)


@pytest.mark.parametrize("rows", [0, 200])
def test_a_training_makes_the_releases_that_were_priced(rows: int) -> None:
    model = make(rounds=3)
    plan = model._plan(1, "1e-6", 1)
    assert isinstance(plan, BoostedPlan)
    batch = records("mixed", 200, seed=2).slice(0, rows)
    made = [entry.mechanism for entry in inputs_of(model, [batch], delta="1e-6")]
    assert made[:2] == [plan.products, plan.label]
    assert len(made) == 5
    assert all(entry.cost.mu_squared() <= 1 / plan.multiplier**2 for entry in made[2:])
    once = make(mechanism="moments")
    single = once._plan(1, "1e-6", 1)
    assert isinstance(single, MomentsPlan)
    assert [entry.mechanism for entry in inputs_of(once, [batch], delta="1e-6")] == [single.release]


def test_a_delta_is_asked_for_where_noise_is_gaussian() -> None:
    for mechanism in ("boosted", "moments", "adassp"):
        assert make(mechanism=mechanism).tags.needs_delta
        with pytest.raises(InvalidInput, match="DELTA_NEEDED"):
            make(mechanism=mechanism).cost(1)
    assert not make(mechanism="laplace").tags.needs_delta


def test_all_records_of_a_user_count() -> None:
    for mechanism in ("boosted", "moments", "laplace", "adassp"):
        model = make(mechanism=mechanism)
        alone, many = (model._plan(1, "1e-6", units) for units in (1, 3))
        for name in ("products", "label", "smallest", "release"):
            if hasattr(alone, name):
                assert getattr(many, name).sensitivity == 3 * getattr(alone, name).sensitivity
        if isinstance(alone, BoostedPlan) and isinstance(many, BoostedPlan):
            each, all_of_them = (plan.round_of(model._structure, 50) for plan in (alone, many))
            assert all_of_them.sensitivity == 3 * each.sensitivity


@pytest.mark.parametrize("most", [4, 100, 1024])
def test_a_round_is_moved_by_the_products_and_the_square_of_a_residual_together(most: int) -> None:
    model = make("numbers")
    plan = model._plan(1, "1e-6", 1)
    assert isinstance(plan, BoostedPlan)
    corner = pa.RecordBatch.from_pydict({"far": [10.0], "wide": [1.0]})
    rows = model._structure.rows.steps(corner)
    piece = LabelledRows(rows, np.array([float(STEPS)]))
    (residual,) = piece.residuals(np.array([-3.0]), most)
    assert residual == most
    added = [*(rows[0] * residual), STEPS / most * residual**2]
    reach = plan.round_of(model._structure, most).sensitivity
    assert 0.999 * float(reach) < np.linalg.norm(added) <= reach


def test_the_least_eigenvalue_moves_by_the_square_of_a_row() -> None:
    model = make("numbers", mechanism="adassp")
    plan = model._plan(1, "1e-6", 1)
    assert isinstance(plan, AdasspPlan)
    assert model._structure.limit < plan.smallest.sensitivity < 1.01 * model._structure.limit


def test_what_no_round_could_release_is_refused_before_the_data() -> None:
    wide = LinearRegression(inputs=(Vector(column="x", size=1000, lower=-1, upper=1),), **LABEL)
    with pytest.raises(InvalidInput, match="SCALE_TOO_LARGE"):
        wide.cost("0.01", "1e-9", records_per_unit=20)
    wide.cost("0.01", "1e-9")
