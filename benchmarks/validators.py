"""Do validators keep their word, and with how many records do they accept, beside the published
ones?

*Violations.* Adaptive pipelines train and validate with more and more data until they are ACCEPTed;
up to eight of a pipeline's first states are just above the target, so whatever is ACCEPTed of these
is a violation. Of all that is ACCEPTed at most eta may be one, and the upper end of that share
(confidence 95%) must be at most 1.5 eta, for each default validator, at eta 0.05 and 0.01. Each
check has a control: the same pipelines with a validator that leaves out what the guarantee rests
on, whose share must be above eta with confidence 95%.

*Power.* Records with which nine of ten tests ACCEPT a state that is better than its target, over
those of listing 2 (losses) or appendix B (accuracy, means). All that chooses a test is counted: the
records of the pilot, the count. And nowhere more than 1.1 times as many: over losses that are rare
and huge, all 0, all the same, uniform, errors at many rates, at epsilons from 0.05 to 8 and targets
from 1.02 to 3 times the loss. ``least accepted`` is how often the default accepts with 1.1 times
the records of the published test.

With ``--data`` losses are those of taxi rides; without it, of a law that looks like them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks._validators.bulk import by_accuracy
from benchmarks._validators.needs import (
    LIKELY,
    accepted_by_pilot,
    accuracy_needs,
    listing_needs,
    pilot_needs,
    published_accuracy_needs,
)
from benchmarks._validators.pipelines import Outcome, Setting, bounds, rules, simulated
from benchmarks._validators.populations import Population, error_rate, named, stand_in, taxi
from benchmarks._validators.sums import adaptive_means, hasty_means, mean_ratio, wrong_rejects
from benchmarks.bars import Bar, Report, Say, at_least, at_most
from ptklib.validators.accuracy import AccuracyTest

__all__ = ["run"]

_ETAS = ("0.05", "0.01")
_FACTOR = 1.1
# Fewer runs settle what is far from its limit.
_FEW, _MANY = 60, 1000
_DEFAULTS = ("piloted bet", "planned bet", "convolution")
_CONTROLS = (
    "bet, noise left out of the threshold",
    "listing 2, uncorrected",
    "convolution, noise left out",
)


def run(say: Say, data: Path | None = None, *, sample: bool = False) -> Report:
    report = Report()
    real = stand_in() if data is None else taxi(data)
    say("power")
    report.bars += _power(real, report)
    say("violations")
    report.bars += _violations(real, report, 500 if sample else 2000)
    say("means and classes")
    report.bars += _sums(real, report, 500 if sample else 2000)
    say("where it is worst")
    report.bars += _worst(report, sample=sample)
    return report


def _power(real: Population, report: Report) -> Iterator[Bar]:
    rows = []
    for epsilon, factor, limit in (("1", 1.1, 1 / 4), ("1", 1.3, 1 / 3), ("0.25", 1.1, None)):
        theirs = listing_needs(real, real.mean * factor, epsilon, "0.05", 400)
        ours = pilot_needs(real, real.mean * factor, epsilon, "0.05", 200)
        assert theirs is not None
        assert ours is not None
        rows.append(_row(real.name, epsilon, f"{factor} x loss", theirs, ours))
        if limit is not None:
            what = f"{real.name}, epsilon {epsilon}, target {factor} x loss: records / listing 2"
            yield at_most(what, ours / theirs, limit)
    for epsilon in ("1", "0.05"):
        theirs = published_accuracy_needs(0.22, "0.77", epsilon, "0.05", 2000)
        ours = accuracy_needs(0.22, "0.77", epsilon, "0.05", 2000)
        assert theirs is not None
        assert ours is not None
        rows.append(_row("accuracy 0.78", epsilon, "0.77", theirs, ours))
        what = f"accuracy 0.78, target 0.77, epsilon {epsilon}: records / appendix B.2"
        yield at_most(what, ours / theirs, 1 / 1.3)
    report.figures["records to ACCEPT"] = rows


def _row(states: str, epsilon: str, target: str, theirs: int, ours: int) -> dict[str, object]:
    return {
        "states": states,
        "epsilon": epsilon,
        "target": target,
        "published": theirs,
        "default": ours,
        "ratio": round(theirs / ours, 2),
    }


def _violations(real: Population, report: Report, pipelines: int) -> Iterator[Bar]:
    rows: list[dict[str, object]] = []
    errors = error_rate(0.25)
    for eta in _ETAS:
        # Few records and much noise, where the noise decides; many, where the data does.
        noisy = Setting(errors, 0.25, "0.05", eta, 16)
        exact = Setting(errors, 0.25, "2", eta, 500)
        small = Setting(real, round(real.mean, 5), "0.2", eta, 250)
        for setting, name in (
            *itertools.product((noisy, exact), _DEFAULTS),
            *itertools.product((small,), _DEFAULTS[:2]),
        ):
            # An exact test comes so near to eta that luck needs more of them.
            count = pipelines * (2 if name == "convolution" else 1)
            outcome = simulated(setting, rules[name], count, seed=1, shared=True)
            yield _kept(
                rows, f"{name}, {setting.states.name}, epsilon {setting.epsilon}", outcome, eta
            )
        for name in _CONTROLS:
            outcome = simulated(noisy, rules[name], pipelines, seed=2, shared=True)
            yield _broken(rows, f"control: {name}", outcome, eta)
        for name in _DEFAULTS[1:]:
            # A bet that is cheap to try, and whose luck must be told from a rate that is near to eta.
            count = pipelines * (8 if name == "planned bet" else 1)
            outcome = simulated(noisy, rules[name], count, seed=3, shared=False)
            yield _broken(rows, f"control: {name}, all of eta at each attempt", outcome, eta)
        for name in ("listing 2", "appendix B.2"):
            _note(rows, name, simulated(noisy, rules[name], pipelines, seed=4, shared=True), eta)
    report.figures["violations among the ACCEPTed"] = rows


def _sums(real: Population, report: Report, pipelines: int) -> Iterator[Bar]:
    rows: list[dict[str, object]] = []
    for eta in _ETAS:
        for values, tolerance in ((error_rate(0.5), "0.04"), (real, "0.004")):
            told = f"mean of {values.name}"
            kept = adaptive_means(values, "0.1", eta, tolerance, pipelines, 5)
            yield _kept(rows, told, kept, eta)
            hasty = hasty_means(values, "0.1", eta, tolerance, pipelines, 6)
            yield _broken(rows, f"control: {told}, noise left out", hasty, eta)
        runs = 4 * pipelines
        for records, epsilon in ((40, "0.05"), (4000, "1")):
            outcome = wrong_rejects(error_rate(0.25), epsilon, eta, records, runs, counted=True)
            yield _kept(rows, f"REJECT, {records} records", outcome, eta)
        outcome = wrong_rejects(error_rate(0.25), "0.05", eta, 40, runs, counted=False)
        yield _broken(rows, "control: REJECT, noise left out", outcome, eta)
    report.figures["violations of means and REJECTs"] = rows
    ratios = {
        f"spread {spread}, epsilon {epsilon}, tolerance {tolerance}, eta {eta}": mean_ratio(
            spread, epsilon, eta, tolerance
        )
        for spread, epsilon, tolerance, eta in itertools.product(
            (0.5, 0.1, 0.01), ("0.05", "1", "8"), ("0.05", "0.005"), _ETAS
        )
    }
    worst = max(ratios, key=lambda name: ratios[name])
    yield at_most(f"means: most records / appendix B.3 ({worst})", ratios[worst], _FACTOR)


def _kept(rows: list[dict[str, object]], what: str, outcome: Outcome, eta: str) -> Bar:
    _note(rows, what, outcome, eta)
    return at_most(
        f"violations, at most, over eta {eta}: {what}", bounds(outcome)[1] / float(eta), 1.5
    )


def _broken(rows: list[dict[str, object]], what: str, outcome: Outcome, eta: str) -> Bar:
    _note(rows, what, outcome, eta)
    return at_least(
        f"violations, at least, over eta {eta}: {what}", bounds(outcome)[0] / float(eta), 1.0
    )


def _note(rows: list[dict[str, object]], what: str, outcome: Outcome, eta: str) -> None:
    low, high = bounds(outcome)
    rows.append(
        {
            "what": what,
            "eta": eta,
            "accepted": outcome.accepted,
            "violations": outcome.violations,
            "rate": round(outcome.rate, 5),
            "from": round(low, 5),
            "to": round(high, 5),
        }
    )


def _worst(report: Report, *, sample: bool) -> Iterator[Bar]:
    epsilons = ("0.05", "8") if sample else ("0.05", "0.25", "1", "8")
    factors = (1.02, 3.0) if sample else (1.02, 1.1, 1.5, 3.0)
    etas = _ETAS[1:] if sample else _ETAS
    cells: dict[str, float] = {}
    for states, epsilon, eta, factor in itertools.product(named(), epsilons, etas, factors):
        # Losses that are all 0 have targets of their own.
        target = states.mean * factor if states.mean else {1.02: 0.001, 1.1: 0.02}.get(factor, 0.3)
        if target >= 0.99:
            continue
        name = f"{states.name}, epsilon {epsilon}, eta {eta}, target {target:.4g}"
        theirs = listing_needs(states, target, epsilon, eta, 200)
        assert theirs is not None, name
        records = int(theirs * _FACTOR)
        cells[name] = _settled(states, target, epsilon, eta, records)
    worst = min(cells, key=lambda name: cells[name])
    report.figures["cells of the search"] = len(cells)
    yield at_least(f"piloted bet: least accepted ({worst})", cells[worst], LIKELY)
    accurate: dict[str, float] = {}
    for rate, epsilon, eta, factor in itertools.product(
        (0.01, 0.1, 0.25, 0.5), epsilons, etas, (1.1, 1.5)
    ):
        target = f"{1 - rate * factor:.6g}"
        needed = published_accuracy_needs(rate, target, epsilon, eta, 200)
        listing = listing_needs(error_rate(rate), rate * factor, epsilon, eta, 200)
        assert needed is not None
        assert listing is not None
        records = int(_FACTOR * min(needed, listing))
        test = AccuracyTest(target=target, epsilon=epsilon, eta=eta)
        rng = np.random.default_rng(records)
        name = f"error rate {rate}, epsilon {epsilon}, eta {eta}, target {target}"
        accurate[name] = float(by_accuracy(test, rate, rng, records, 400).mean())
    worst = min(accurate, key=lambda name: accurate[name])
    yield at_least(f"convolution: least accepted ({worst})", accurate[worst], LIKELY)


def _settled(states: Population, target: float, epsilon: str, eta: str, records: int) -> float:
    first = accepted_by_pilot(states, target, epsilon, eta, records, _FEW)
    if first >= LIKELY + 0.06:
        return first
    return accepted_by_pilot(states, target, epsilon, eta, records, _MANY)
