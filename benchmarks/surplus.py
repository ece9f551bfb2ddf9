"""What the surplus of a window is worth: the same PTKs on the same windows under the same promise,
once with the plans of fewest samples and once with the surplus.

The loss of a PTK is measured, not planned: how far its published features are from those of the exact
tables of all records so far, on average over the records, as a share of the range that they lie in.
That is what a target bounds for kinds with a closed form, noise and sampling together; what no
training could avoid (people of one age work different hours) is in neither mode's favour and left
out. ``expected`` is the planner's own estimate, for comparison. Both modes see the same records, and
every PTK is trained in every window; losses are averaged over windows.

Every point of every block is then held against the promise: what the ledger has there must be
admitted by the stream's filter, after the last charge.

Bars: mean loss over PTKs, and mean of loss over target, at most 0.7 of the minimum's, on every
stream; no point beyond the promise.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks._surplus.streams import DAY_MS, FIRST_MS, StreamCase, stream_cases
from benchmarks.bars import Report, Say, at_most
from ptklib import registry
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import USES, StreamSpec

__all__ = ["run"]

LIMIT = 0.7
_ROUNDS = 3
_POLICY = Policy(epsilon=1, delta="1e-6")


def run(say: Say, data: Path | None = None) -> Report:
    """All streams, both modes."""
    report = Report()
    rows: list[dict[str, Any]] = []
    for case in stream_cases(data):
        losses, beyond = _measured(case, say)
        means = {use: float(np.mean([losses[use, name] for name in case.ptks])) for use in USES}
        relative = {
            use: float(np.mean([losses[use, name] / ptk.target for name, ptk in case.ptks.items()]))
            for use in USES
        }
        what = f"{case.name}: mean loss over PTKs, surplus / minimum"
        report.bars += [
            at_most(what, means["surplus"] / means["minimum"], LIMIT),
            at_most(
                f"{case.name}: mean of loss over target, surplus / minimum",
                relative["surplus"] / relative["minimum"],
                LIMIT,
            ),
            at_most(f"{case.name}: points of the ledger beyond the promise", beyond, 0),
        ]
        rows += [
            {
                "stream": case.name,
                "ptk": name,
                "target": ptk.target,
                "minimum": round(losses["minimum", name], 5),
                "surplus": round(losses["surplus", name], 5),
                "ratio": round(losses["surplus", name] / losses["minimum", name], 3),
                "expected": round(losses["expected", name], 3),
            }
            for name, ptk in case.ptks.items()
        ]
    report.figures["losses"] = rows
    return report


def _measured(case: StreamCase, say: Say) -> tuple[dict[tuple[str, str], float], int]:
    """The mean loss by mode and PTK, with what the planner expected; and how many points are beyond
    the promise.
    """
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    beyond = 0
    for number in range(_ROUNDS):
        for use in USES:
            say(f"{case.name}: {use}, round {number + 1} of {_ROUNDS}")
            with tempfile.TemporaryDirectory() as folder, Store(folder, workers=0) as store:
                _register(store, case, use)
                for window in range(len(case.windows)):
                    _run_window(store, case, window, use, found)
                beyond += _beyond(store)
    return {key: float(np.mean(values)) for key, values in found.items()}, beyond


def _register(store: Store, case: StreamCase, use: str) -> None:
    at = Column(name="at", type="timestamp[ms]", lower="2026-01-01")
    store.create_stream(
        StreamSpec(
            name=case.name,
            columns=(at, *case.columns),
            time_column="at",
            policy=_POLICY,
            window_seconds=DAY_MS // 1000,
            use=use,
        )
    )
    for name, ptk in case.ptks.items():
        answer = store.register(
            name, stream=case.name, kind=ptk.kind, config=dict(ptk.config), target=ptk.target
        )
        if answer.status != "ACTIVE":
            raise RuntimeError(f"{name} on {case.name}: {answer.reason}")


def _run_window(
    store: Store,
    case: StreamCase,
    window: int,
    use: str,
    found: dict[tuple[str, str], list[float]],
) -> None:
    store.push(case.name, case.windows[window], producer="benchmark", seq=window)
    store.run(case.name, until_ms=FIRST_MS + (window + 1) * DAY_MS)
    plan = store.plan(case.name)
    so_far = pa.concat_tables(case.windows[: window + 1])
    for name, ptk in case.ptks.items():
        state = store.get_state(name)
        if state.manifest.version != window + 1:
            raise RuntimeError(f"{name} was not trained in window {window}")
        made = registry.make(ptk.kind, ptk.config)
        exact = made.exact(so_far.to_batches())
        assert exact is not None
        ours, theirs = (_values(made.features(one, so_far)) for one in (state.arrays, exact))
        found[use, name].append(float(np.abs(ours - theirs).mean()) / ptk.width)
        given = None if plan is None else plan.given(name)
        if given is not None:
            found["expected", name].append(given.expected / given.expected_minimum)


def _values(features: pa.Table) -> np.ndarray[Any, Any]:
    return np.column_stack([column.to_numpy() for column in features.columns])


def _beyond(store: Store) -> int:
    """How many points of the ledger the filter would not admit as they are."""
    parts = store._parts
    beyond = 0
    for spec in store.streams():
        privacy_filter = parts.privacy_filter(spec.name)
        nothing = np.zeros(privacy_filter.width, dtype=np.int64)
        for block in parts.ledger.blocks(spec.name):
            losses = [loss for _, loss in parts.ledger.block(spec.name, block).losses]
            admitted = privacy_filter.admits(np.array(losses, dtype=np.int64), nothing)
            beyond += int((~admitted).sum())
    return beyond
