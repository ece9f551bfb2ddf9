"""Privacy-adaptive training: how often what is released breaks its target, and what the attempts
cost, by strategy, on invented records.

The PTK under trial learns one number with far more noise than it would need, so that budget and
records matter; targets lie between what no budget reaches and what any does. ``budget`` of a
pipeline is the sum over its attempts of epsilon times records.
"""

from __future__ import annotations

import statistics
from fractions import Fraction

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib.ledger.policy import Policy
from ptklib.pipelines.advancing import RELEASED, WAITING, Advance, advance
from ptklib.pipelines.aggressive import Aggressive
from ptklib.pipelines.conserve import Conserve
from ptklib.pipelines.held import HeldStream
from ptklib.pipelines.pipeline import Pipeline
from ptklib.pipelines.planned import PlanAhead
from ptklib.pipelines.strategy import Strategy
from tests.pipelines.rough import Rough, records, true_loss

_STRATEGIES: tuple[Strategy, ...] = (PlanAhead(), Conserve(), Aggressive())
_ROUGH = (20, 100, 300, 1000)
_TARGETS = ("0.023", "0.026", "0.03", "0.04")
_RECORDS, _BLOCKS = 20_000, 8
# Below the least loss that there is: whoever accepts is wrong.
_BELOW = "0.0185"
_ETA = Fraction(1, 20)


def run(say: Say, *, sample: bool = False) -> Report:
    seeds, wrongs = (2, 100) if sample else (6, 600)
    rows, ratios, released = [], [], []
    broken = 0
    most_over = 0.0
    for rough in _ROUGH:
        for target in _TARGETS:
            budgets: dict[str, list[float | None]] = {}
            for strategy in _STRATEGIES:
                say(f"noise {rough}, target {target}, {strategy.kind}")
                ends = [_end(strategy, rough, target, seed) for seed in range(seeds)]
                budgets[strategy.kind] = [_budget(end) for end in ends]
                released += [end for end in ends if end.status == RELEASED]
                broken += sum(
                    end.state is not None and true_loss(end.state.arrays) > float(target)
                    for end in ends
                )
                if isinstance(strategy, Conserve):
                    most_over = max([most_over, *map(_over_last, ends)])
            ratios += [
                ours / theirs
                for ours, theirs in zip(budgets["planned"], budgets["conserve"], strict=True)
                if ours is not None and theirs is not None
            ]
            rows.append({"noise": rough, "target": target} | _medians(budgets))
    wrong = sum(
        _end(Conserve(), 20, _BELOW, 10_000 + seed, blocks=3).status == RELEASED
        for seed in range(wrongs)
    )
    return Report(
        bars=[
            at_most("violations among released, one by one", broken / len(released), float(_ETA)),
            at_most("released though no state keeps the target", wrong / wrongs, float(_ETA)),
            at_most("conserve: budget of all attempts / of the last one, at most", most_over, 4.0),
            at_most("planned / conserve: budget (median)", statistics.median(ratios), 0.5),
            at_least("pipelines released", len(released), 1),
        ],
        figures={"budget (median), by noise and target": rows},
    )


def _end(
    strategy: Strategy, rough: int, target: str, seed: int, *, blocks: int = _BLOCKS
) -> Advance:
    """Where a pipeline ends, with another block whenever it waits."""
    pipeline = Pipeline(
        name="mean",
        ptk=Rough(rough=rough),
        target=target,
        epsilon="0.9",
        eta=_ETA,
        strategy=strategy,
    )
    stream = HeldStream(Policy(epsilon=1, delta=0))
    end = None
    for number in range(blocks):
        stream.add(records(_RECORDS, 1000 * seed + number))
        end = advance(pipeline, stream, None if end is None else end.trail)
        if end.status != WAITING:
            break
    assert end is not None
    return end


def _used(end: Advance) -> list[float]:
    return [float(attempt.epsilon) * attempt.records for attempt in end.trail.attempts]


def _budget(end: Advance) -> float | None:
    return sum(_used(end)) if end.status == RELEASED else None


def _over_last(end: Advance) -> float:
    used = _used(end)
    return sum(used) / used[-1] if end.status == RELEASED else 0.0


def _medians(budgets: dict[str, list[float | None]]) -> dict[str, float | None]:
    told: dict[str, float | None] = {}
    for kind, values in budgets.items():
        known = [value for value in values if value is not None]
        told[kind] = round(statistics.median(known)) if known else None
    return told
