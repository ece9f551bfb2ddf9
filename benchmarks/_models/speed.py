"""How fast the engine is with privacy beside the same net without, and how much memory it takes.

Three nets: 60-1000-10 on batches of 600 (as for MNIST), 61-5000-100-1 on batches of 1,024 (as for
taxi rides), and a logistic model of 512 inputs on batches of 512; random numbers for data, which
take as long as any. Both sides draw batches, take rows, sum gradients and move weights; one side
clips each gradient, sums whole numbers and adds exact noise. *CPU seconds* of one thread, sides in
turn, and the median of the ratios; what else runs on the machine hardly matters then.

Without the cost of noise: the same time less that of drawing as much noise alone.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped,unused-ignore]
from sklearn.linear_model import SGDClassifier  # type: ignore[import-untyped,unused-ignore]
from sklearn.neural_network import (  # type: ignore[import-untyped,unused-ignore]
    MLPClassifier,
    MLPRegressor,
)

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib.models.inputs import STEPS
from ptklib.models.sgd.encoded import EncodedRecords, Encoder
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.heads import Logistic, LossHead, Softmax, Squared
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.noise import StepNoise
from ptklib.models.sgd.optimiser import Optimiser, Place
from ptklib.models.sgd.plain import PlainSums
from ptklib.models.sgd.plan import SgdPace, SgdPlan, SgdStage, plan_of
from ptklib.models.sgd.run import Run
from ptklib.price_first import Budget

__all__ = ["report"]

_LEAST_WITH_NOISE, _LEAST_WITHOUT, _MOST_MEMORY = 0.5, 0.65, 1.5
_ROUNDS, _FEW_ROUNDS = 7, 3
_BUDGET = Budget(Fraction(2), Fraction(1, 100_000), 1)
_PLAIN = Optimiser(learning_rate=0.01, momentum=0.9)


@dataclass(frozen=True, eq=False)
class Case:
    """A net, its batches, and how many steps are timed at once."""

    name: str
    inputs: int
    hidden: tuple[int, ...]
    head: LossHead
    batch: int
    steps: int
    records: int

    @property
    def network(self) -> Network:
        """Rows of length 1."""
        return Network(self.inputs, self.hidden, "relu", self.head, 1.0)

    @property
    def plan(self) -> SgdPlan:
        """The steps that are timed, priced."""
        rate = Fraction(self.batch, self.records)
        return plan_of(SgdPace("poisson", rate, (SgdStage(self.steps, 1.0),)), _BUDGET)

    def data(self) -> EncodedRecords:
        """Random rows of length 1, with random labels."""
        rng = np.random.default_rng(0)
        encoder = Encoder(self.inputs, Forward(self.network).bits[0])
        for start in range(0, self.records, 1000):
            count = min(1000, self.records - start)
            rows = rng.normal(0, 1, (count, self.inputs))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            encoder.add(np.trunc(rows * STEPS), self.labels(count, rng))
        return encoder.done()

    def labels(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Labels that suit the head."""
        if isinstance(self.head, Squared):
            return rng.uniform(-1, 1, count)
        most = 2 if isinstance(self.head, Logistic) else self.head.outputs
        return rng.integers(0, most, count).astype(np.float64)


_CASES = (
    Case("60-1000-10, batch 600", 60, (1000,), Softmax(10), 600, 200, 60_000),
    Case("61-5000-100-1, batch 1024", 61, (5000, 100), Squared(), 1024, 12, 60_000),
    Case("logistic 512, batch 512", 512, (), Logistic(), 512, 3000, 60_000),
)


def report(say: Say, sample: bool) -> Report:
    """Ratios of speed and of memory, and scikit-learn beside."""
    made, rows = Report(), []
    for case in _CASES:
        private, bare, plain = _speeds(case, _FEW_ROUNDS if sample else _ROUNDS)
        with_noise, without = np.median(private / plain), np.median(bare / plain)
        memory = _memory(case)
        named = f"DP-SGD {case.name}: examples/s over the same net without privacy"
        made.bars += [
            at_least(f"{named}, exact noise", float(with_noise), _LEAST_WITH_NOISE),
            at_least(f"{named}, without the cost of noise", float(without), _LEAST_WITHOUT),
            at_most(
                f"DP-SGD {case.name}: peak memory over that without privacy", memory, _MOST_MEMORY
            ),
        ]
        rows.append(
            {
                "net": case.name,
                "private examples/s": round(float(np.median(private))),
                "without noise's cost": round(float(np.median(bare))),
                "not private": round(float(np.median(plain))),
                "scikit-learn": round(_scikit_learn(case)),
                "ratio": round(float(with_noise), 3),
                "ratio without noise's cost": round(float(without), 3),
                "memory": round(memory, 3),
            }
        )
        say(f"speed: {rows[-1]}")
    made.figures["speed"] = rows
    return made


def _speeds(case: Case, rounds: int) -> tuple[NDArray[np.float64], ...]:
    """Examples/s of each round: private, private without noise, not private."""
    data, run = case.data(), _run(case)
    examples = case.steps * case.batch
    found = []
    _private(run, data)
    _not_private(case, data)
    for _ in range(rounds):
        private = _seconds(lambda: _private(run, data))
        noise = _seconds(lambda: _noise(case, run.plan))
        plain = _seconds(lambda: _not_private(case, data))
        found.append((examples / private, examples / max(private - noise, 1e-9), examples / plain))
    return tuple(np.array(found).T)


def _run(case: Case) -> Run:
    return Run(case.network, case.plan, _PLAIN, (1.0,), case.records, 0)


def _private(run: Run, data: EncodedRecords) -> None:
    run.train(data)


def _noise(case: Case, plan: SgdPlan) -> None:
    drawn = StepNoise(case.network.size, 1, None)
    for step in range(plan.steps):
        drawn.draw(*plan.multiplier(step))


def _not_private(case: Case, data: EncodedRecords) -> None:
    """The same number of steps over batches of a shuffle."""
    network, rng = case.network, np.random.default_rng(0)
    sums, place = PlainSums(network), Place.at(network.initial(0))
    gradient = np.empty(network.size, dtype=np.float32)
    scale = np.float32(2.0 ** -Forward(network).bits[0])
    order = rng.permutation(len(data))
    for step in range(case.steps):
        start = step * case.batch % (len(data) - case.batch)
        members = np.sort(order[start : start + case.batch])
        rows = data.rows(members)
        rows *= scale
        np.multiply(
            sums.sums(place.parameters, rows, data.labels[members]),
            np.float32(1 / case.batch),
            out=gradient,
        )
        _PLAIN.move(place, gradient, step, case.steps)


def _seconds(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _memory(case: Case) -> float:
    """Peak of what is allocated, the records among it: with privacy over without."""
    peaks = []
    for private in (True, False):
        gc.collect()
        tracemalloc.start()
        data = case.data()
        tracemalloc.reset_peak()
        if private:
            _private(_run(case), data)
        else:
            _not_private(case, data)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        del data
    return peaks[0] / peaks[1]


def _scikit_learn(case: Case) -> float:
    """Examples/s of the nearest estimator: one epoch over a third of the records."""
    rng = np.random.default_rng(0)
    count = case.records // 3
    rows = rng.normal(0, 0.1, (count, case.inputs)).astype(np.float32)
    labels = case.labels(count, rng)
    if not case.hidden:
        model = SGDClassifier(loss="log_loss", max_iter=1, tol=None)
    else:
        kind = MLPRegressor if isinstance(case.head, Squared) else MLPClassifier
        model = kind(
            hidden_layer_sizes=case.hidden, solver="sgd", batch_size=case.batch, max_iter=1
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return count / _seconds(lambda: model.fit(rows, labels))
