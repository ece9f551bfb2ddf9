"""When tastes are bought, how they are read, and how far they are trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget
from ptklib.ptks.embeddings import Embeddings
from ptklib.ptks.embeddings import factorization as hpf
from ptklib.ptks.embeddings.budget import LEVEL, Prospect, Shares, checked, items_first, shares_of
from ptklib.ptks.embeddings.events import EventTable
from ptklib.ptks.embeddings.grams import evened_by, products_of
from ptklib.ptks.embeddings.releases import GRAM_SCALE, PARTS, STEPS, plan_of
from ptklib.ptks.embeddings.trust import evidence, held_out, sums_of, trust_in


@settings(max_examples=200, deadline=None)
@given(
    epsilon=st.sampled_from(["0.01", "1", "20", "1000"]),
    share=st.floats(0.01, 0.99),
    rounds=st.integers(1, 100),
    records=st.floats(1, 1e9),
    older=st.sampled_from([0.0, 1e3, 1e9]),
    sizes=st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)),
    left=st.floats(1e-4, 0.25),
    tastes=st.integers(1, 255),
)
def test_whatever_is_decided_the_shares_are_no_more_than_there_is(
    epsilon: str,
    share: float,
    rounds: int,
    records: float,
    older: float,
    sizes: tuple[int, int],
    left: float,
    tastes: int,
) -> None:
    plan = plan_of(Budget.of(epsilon, "1e-6", 1), share=share, rounds=rounds)
    found = shares_of(plan, Prospect(records, older, sizes, left), 0.4, tastes)
    parts = found.items + found.users + found.items_again + found.updates * found.update
    parts += found.trust + found.interplay
    assert PARTS - found.updates - 2 <= LEVEL + parts <= PARTS
    assert found.items == items_first(plan) >= 1
    # Without tastes, both sides have the same; with them, updates are measured and tested.
    assert found.updates == 0 or (found.update > 0 and found.trust > 0)
    assert found.updates or abs(found.items + found.items_again - found.users) <= 1


def test_tastes_are_bought_where_there_are_records_and_epsilon_for_them() -> None:
    def updates(epsilon: str, records: float, older: float = 0.0, **more: Any) -> int:
        plan = plan_of(Budget.of(epsilon, "1e-6", 1), share=0.65, rounds=2, **more)
        return shares_of(plan, Prospect(records, older, (300, 200), 0.03), 0.4, 7).updates

    assert [updates(one, 1e5) for one in ("0.1", "0.3", "1", "3", "1000")] == [0, 0, 5, 5, 11]
    assert [updates("1", records) for records in (1e3, 1e4, 1e5, 1e8)] == [0, 0, 5, 11]
    assert [updates("1", 5e4, older) for older in (0.0, 5e5)] == [0, 5]
    assert updates("0.1", 10.0, always=True) == 5


def test_shares_of_more_than_there_is_are_refused() -> None:
    with pytest.raises(AssertionError, match="not within"):
        Shares(items=PARTS // 2, users=PARTS // 2)


def test_a_row_of_like_partners_is_read_by_what_it_met() -> None:
    """Two rows want (0.3, 0.1): one meets both features, one meets the first alone."""
    wanted, counts = np.array([0.3, 0.1]), np.array([100.0, 100.0])
    met = [np.diag([0.5, 0.5]), np.diag([1.0, 0.0])]
    sums = np.array([100 * one @ wanted for one in met])
    products = np.array([[100 * one[0, 0], 0.0, 100 * one[1, 1]] for one in met])
    moment = np.diag([0.5, 0.5])
    exact = evened_by(sums, products, counts, 0.0, moment)
    assert np.allclose(exact[0], sums[0])
    # As strong as if it had met the first as often as others do.
    assert np.allclose(exact[1], [50 * 0.3, 0.0])
    # Noise that drowns products leaves sums as they would be for mixed partners.
    assert np.allclose(evened_by(sums, products, counts, 1e6, moment), sums)


def test_products_of_whole_features_are_exact_and_no_longer_than_claimed() -> None:
    units = hpf.whole(np.random.default_rng(5).normal(0, 1, (1000, 4)))
    found = products_of(units) * GRAM_SCALE
    assert found.shape == (1000, 10)
    assert np.array_equal(found, np.rint(found))
    assert np.square(found).sum(axis=1).max() <= (STEPS * hpf.RESOLUTION // 2) ** 2


def test_a_pair_is_held_out_by_itself_and_tastes_are_not_learned_from_it() -> None:
    users, items = (one.ravel() for one in np.indices((300, 200)))
    held = held_out(users, items)
    assert held.mean() == pytest.approx(1 / 16, rel=0.05)
    assert np.array_equal(held, held_out(users.astype(np.int32), items.astype(np.int32)))
    for axis in (0, 1):
        shares = held.reshape(300, 200).mean(axis=axis)
        assert abs(shares - 1 / 16).max() < 0.1
    data = EventTable.of([(users, items, np.full(len(users), 4096.0))], 300, 200)
    residuals = data.residuals(np.zeros(200), np.ones(300), 0.0, 0.4)
    matrix, met = data.learned_from(residuals, data.held_out())
    assert np.array_equal(met.toarray().ravel() == 0, held)
    assert np.array_equal(matrix.toarray(), met.toarray() * STEPS)


@pytest.mark.parametrize("truth", [0.0, 0.4, 1.0])
def test_tastes_are_trusted_as_far_as_they_are_true(truth: float) -> None:
    generator = np.random.default_rng(6)
    predicted = generator.normal(0, 300, 20_000)
    spread = 1000.0**2
    residuals = np.clip(
        np.rint(truth * predicted + generator.normal(0, 1000, 20_000)), -STEPS, STEPS
    )
    (sums,) = sums_of(residuals, predicted)
    assert trust_in(evidence(sums, 5.0 * STEPS, spread)) == pytest.approx(truth, abs=0.1)
    # A test that tells nothing leaves what was believed before.
    assert trust_in(evidence(sums, 1e9 * STEPS, spread)) > 0.99
    assert trust_in(np.zeros(3)) == 1.0


@pytest.mark.parametrize(
    ("options", "records"),
    [({"tastes": "always"}, 1), ({"publish": "items", "share": 0.01, "rounds": 100}, 1000)],
)
def test_noise_that_cannot_be_drawn_is_refused_before_there_is_data(
    options: dict[str, Any], records: int
) -> None:
    key = {"first": 0, "last": 2}
    ptk = Embeddings(
        users=IntegerRange(column="user", **key),
        items=IntegerRange(column="item", **key),
        value="stars",
        lower=0.0,
        upper=5.0,
        **options,
    )
    with pytest.raises(InvalidInput, match="SCALE_TOO_LARGE"):
        ptk.cost("1e-5", "1e-9", records_per_unit=records)

    unopened: Any = iter(lambda: pytest.fail("the data was opened"), None)
    with pytest.raises(InvalidInput, match="SCALE_TOO_LARGE"):
        ptk.train_dp(unopened, epsilon="1e-5", delta="1e-9", records_per_unit=records)


@settings(max_examples=200, deadline=None)
@given(
    epsilon=st.floats(-6, 0),
    share=st.floats(0.01, 0.99),
    rounds=st.integers(1, 100),
    records=st.floats(0, 30),
    tastes=st.integers(1, 20),
    clip=st.sampled_from([0.01, 0.4]),
)
def test_whatever_is_decided_its_noise_can_be_drawn(
    epsilon: float, share: float, rounds: int, records: float, tastes: int, clip: float
) -> None:
    """Otherwise a noisy number of records would make a training fail halfway, its budget spent."""
    plan = plan_of(Budget.of(f"{10**epsilon:.9f}", "1e-9", 1), share=share, rounds=rounds)
    shares = shares_of(plan, Prospect(10.0**records, 0.0, (2, 2), 0.25), clip, tastes)
    if shares.updates:
        plan.tastes(shares.update, products=shares.products)
    for parts in (LEVEL, shares.items, shares.users):
        checked(plan).activity(parts)
