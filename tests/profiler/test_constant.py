"""A supervised PTK is held against the best constant: what it learns of records without inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from profiler.measuring.constant import Blinded, label_of
from profiler.measuring.pieces import check_disjoint
from profiler.measuring.schedule import schedule
from profiler.measuring.terms import ProfileTerms
from profiler.profiles import measured_profile
from ptklib.privacy.noise.source import BitSource
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.forest import Forest
from ptklib.testing.noise import SeededSource, planted_noise
from tests.profiler.small import Planted, WatchingBench, planted_run

RECORDS = 20_000
FOREST = Forest(
    inputs=(Number(column="x", lower=0.0, upper=1.0),), label="y", classes=(0, 1), trees=2, depth=2
)


def records(rows: int = RECORDS, seed: int = 0) -> pa.Table:
    """A label that follows the input; three in ten are 1, so the best constant has a loss of 0.21."""
    rng = np.random.default_rng(seed)
    x = rng.random(rows)
    return pa.table({"x": x, "y": (x > 0.7).astype(np.int64)})


def profiled(target: str) -> tuple[Any, WatchingBench]:
    bench = WatchingBench(records(), np.random.default_rng(1).random(RECORDS), runner=planted_run)
    terms = ProfileTerms.of(target, 1, n_max=512)
    found = measured_profile(FOREST, terms, ["0.6"], bench, RECORDS, noise=Planted(2))
    return found, bench


@pytest.mark.parametrize(("target", "vain"), [("0.3", True), ("0.15", False)])
def test_a_target_that_a_constant_keeps_is_told(target: str, vain: bool) -> None:
    found, _ = profiled(target)
    assert found.status == "REACHED"
    assert found.constant is not None
    assert abs(found.constant.risk - 0.21) <= found.constant.error < 0.05
    assert found.vain is vain
    assert found.as_json()["constant"]["risk"] == found.constant.risk


def test_it_is_charged_on_a_piece_of_its_own_and_as_one_more_look() -> None:
    found, bench = profiled("0.3")
    names = [charge.name for charge in bench.spent]
    assert found.constant.charged == ("level 0.6/blinded", "level 0.6/look-blinded")
    assert names.count("level 0.6/blinded") == names.count("level 0.6/look-blinded") == 1
    check_disjoint({charge.piece for charge in bench.spent})
    costs = {piece.name: cost.epsilon(0) for piece, cost in found.spent.items()}
    assert costs["level 0.6/blinded"] == pytest.approx(0.6)
    assert costs["level 0.6/validation"] <= 0.75 * 1.1 + 1e-9
    assert bench.reserved == []
    worst = schedule(FOREST, ProfileTerms.of("0.3", 1, n_max=512), ["0.6"], RECORDS).worst_case
    assert max(cost.epsilon(0) for cost in worst.values()) <= 0.75 * 1.1 + 1e-9


def test_inputs_move_nothing_in_what_is_learnt_or_lost() -> None:
    blinded, one, other = Blinded(FOREST), records(500), records(500, seed=5)
    other = other.set_column(1, "y", one.column("y"))
    states = []
    for table in (one, other):
        source: BitSource = SeededSource(7)
        with planted_noise():
            states.append(blinded.train_dp(table.to_batches(), epsilon=1, noise=source))
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name])
    losses = [blinded.loss(states[0], table.to_batches()) for table in (one, other)]
    np.testing.assert_array_equal(losses[0], losses[1])
    assert len(set(losses[0].tolist())) == 2, "one for each label"


def test_only_supervised_kinds_have_a_label() -> None:
    from benchmarks._profiler.ptks import Mean

    assert label_of(FOREST) == "y"
    assert label_of(Mean()) is None
    terms = ProfileTerms.of("0.3", 1, n_max=512)
    assert schedule(Mean(), terms, ["0.6"], RECORDS).constant is None
    assert schedule(FOREST, terms, ["0.6"], 3_000).constant is None, "too small a slice"
