"""Attacks on embeddings: last states that make no numbers, and units of privacy that are not the
users.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.ptks.embeddings import Embeddings
from ptklib.ptks.embeddings import factorization as hpf
from ptklib.ptks.embeddings.events import EventTable
from ptklib.ptks.embeddings.releases import STEPS


def make(**options: Any) -> Embeddings:
    keys = {
        "users": IntegerRange(column="user", first=0, last=4),
        "items": IntegerRange(column="item", first=0, last=4),
    }
    given: dict[str, Any] = {
        **keys,
        "value": "stars",
        "lower": 0.0,
        "upper": 5.0,
        "factors": 3,
        **options,
    }
    return Embeddings(**given)


def rows(*records: tuple[int, int, float]) -> list[pa.RecordBatch]:
    names = ("user", "item", "stars")
    return [
        pa.RecordBatch.from_pydict(
            {name: [one[place] for one in records] for place, name in enumerate(names)}
        )
    ]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e308])
def test_residuals_and_features_are_bounded_whatever_is_expected(wrong: float) -> None:
    events = EventTable.of([(np.array([0, 1]), np.array([0, 1]), np.array([7.0, 9.0]))], 2, 2)
    for items, users in (
        ([wrong, 0.5], [1.0, 1.0]),
        ([0.5, 0.5], [1.0, wrong]),
        ([np.inf, 0.5], [0.0, wrong]),
    ):
        with np.errstate(all="ignore"):
            found = events.residuals(np.array(items), np.array(users), 0.0, 0.4).data
        assert np.all(np.abs(found) <= STEPS)
        assert np.array_equal(found, np.rint(found))
    units = hpf.whole(np.array([[wrong, 0.0], [wrong, wrong], [0.6, 0.8]]))
    assert np.all(np.square(units).sum(axis=1) <= hpf.RESOLUTION**2)
    assert np.array_equal(units, np.rint(units))
    assert units[2].any()


def test_a_last_state_of_huge_numbers_is_refused_before_it_tells_which_items_have_records() -> None:
    # With one huge activity and one of nothing, training failed if and only if the latter item had
    # a record.
    ptk = make()
    previous = dict(ptk.train_dp(rows((0, 2, 1.0)), epsilon=1, delta=1e-6))
    for name in sorted(set(previous) - {"windows"}):
        huge = previous[name].copy()
        huge.flat[-1] = 1e200
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            ptk.train_dp(
                rows((4, 4, 5.0)), epsilon="0.001", delta=1e-6, previous={**previous, name: huge}
            )


def test_losses_and_features_of_the_largest_states_are_numbers() -> None:
    for ptk in (make(), make(publish="items"), make(upper=1e100)):
        arrays = dict(ptk.train_dp(rows((0, 2, 1.0)), epsilon=1, delta=1e-6))
        batches = rows(*((user, item, 2.0) for user in range(6) for item in range(6)))
        for name in sorted(set(arrays) - {"windows"}):
            for size in (2.0**60, 1.0, 0.0):
                for sign in (-1, 1):
                    weights = name.endswith(("weights", "activity")) or name in (
                        "interplay",
                        "level",
                        "trust",
                    )
                    changed = {
                        **arrays,
                        name: np.full_like(arrays[name], size if weights else sign * size),
                    }
                    losses = ptk.loss(changed, batches)
                    assert np.all((losses >= 0) & (losses <= 1))
                    found = ptk.features(changed, pa.Table.from_batches(batches))
                    assert all(np.all(np.isfinite(column.to_numpy())) for column in found.columns)


def test_values_that_float64_cannot_multiply_are_refused() -> None:
    with pytest.raises(InvalidInput, match="upper <= 1e"):
        make(upper=1.7e308)


def test_the_user_level_proof_needs_the_users_of_the_unit() -> None:
    assert make(publish="items").unit_column() == "user"
    # One unit whose records name different users counts many times in one item; those of one user
    # count once.
    many = EventTable.pairs(
        [(np.arange(4), np.zeros(4, np.int64), np.full(4, float(STEPS)))], 5, 2
    ).item_totals()
    once = EventTable.pairs(
        [(np.zeros(4, np.int64), np.zeros(4, np.int64), np.full(4, float(STEPS)))], 5, 2
    ).item_totals()
    assert np.array_equal(many, 4 * once)
