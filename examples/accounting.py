"""``python -m examples.accounting``: what the same training costs by different ways of accounting,
drawn into docs/internals/accounting; and the schedules of the noise.

The settings are those of Figures 2, 3 and 4 of Yu et al. 2019, "Differentially private model
publishing for deep learning": rate 0.01, sigma 6, delta 1e-5. Only arithmetic: no data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from examples.plots import Axis, Point, Series, line_chart
from ptklib.privacy.schedules.base import NoiseSchedule
from ptklib.privacy.schedules.decays import (
    ExponentialDecay,
    PolynomialDecay,
    StepDecay,
    TimeDecay,
    Uniform,
)
from ptklib.privacy.schedules.estimates import (
    moments_accountant,
    strong_composition,
    zcdp_of_reshuffling,
    zcdp_of_sampling,
)
from ptklib.privacy.schedules.runs import ReshuffledRun, SampledRun
from ptklib.privacy.schedules.solving import affordable_epochs

__all__ = ["DELTA", "FOLDER", "METHODS", "PICTURES", "SCHEDULES", "Training"]

FOLDER = Path("docs/internals/accounting")
DELTA = Fraction(1, 10**5)
BUDGET = Fraction("1.5625")


@dataclass(frozen=True, kw_only=True)
class Training:
    """So many epochs at one noise; with batches of this part of the records."""

    epochs: int
    rate: Fraction = Fraction(1, 100)
    sigma: Fraction = Fraction(6)

    @property
    def reshuffled(self) -> ReshuffledRun:
        """With disjoint batches."""
        return ReshuffledRun(sigmas=(self.sigma,) * self.epochs)

    @property
    def sampled(self) -> SampledRun:
        """With Poisson batches; as many steps as batches would be."""
        steps = round(self.epochs / self.rate)
        return SampledRun(rate=self.rate, steps=steps, sigmas=(self.sigma,))


METHODS: dict[str, Callable[[Training], float]] = {
    "strong composition": lambda of: strong_composition(of.sampled, DELTA).planned_epsilon,
    "reshuffled, zCDP": lambda of: zcdp_of_reshuffling(of.reshuffled, DELTA).planned_epsilon,
    "reshuffled, exact": lambda of: of.reshuffled.cost.epsilon(DELTA),
    "sampled, zCDP estimate": lambda of: zcdp_of_sampling(of.sampled, DELTA).planned_epsilon,
    "sampled, moments": lambda of: moments_accountant(of.sampled, DELTA).planned_epsilon,
    "sampled, exact": lambda of: of.sampled.cost.epsilon(DELTA),
}
SCHEDULES: dict[str, NoiseSchedule] = {
    "uniform": Uniform(sigma=Fraction(8)),
    "time": TimeDecay(initial=Fraction(10), decay=Fraction("0.05")),
    "step": StepDecay(initial=Fraction(10), decay=Fraction("0.6"), period=10),
    "exponential": ExponentialDecay(initial=Fraction(10), decay=Fraction("0.01")),
    "polynomial": PolynomialDecay(
        initial=Fraction(10), decay=Fraction(3), final=Fraction(2), period=100
    ),
}


def _by_method(names: Sequence[str], trainings: Sequence[tuple[float, Training]]) -> list[Series]:
    return [
        Series(name, tuple(Point(at, METHODS[name](training)) for at, training in trainings))
        for name in names
    ]


def epochs_svg() -> str:
    """Figure 2: epsilon by epochs."""
    trainings = [(epochs, Training(epochs=epochs)) for epochs in (5, *range(20, 401, 20))]
    return line_chart(
        "epsilon by epochs (rate 0.01, sigma 6, delta 1e-5)",
        "Six ways to price the same training over 400 epochs; exact accounting of Poisson batches "
        "is lowest, strong composition highest.",
        Axis(words="epochs"),
        Axis(words="epsilon", log=True),
        _by_method(tuple(METHODS), trainings),
    )


def rates_svg() -> str:
    """Figure 3a: epsilon after 200 epochs, by the rate."""
    rates = [Fraction(number, 1000) for number in (2, 4, 6, 8, 10, 15, 20, 30, 40)]
    names = ("reshuffled, exact", "sampled, zCDP estimate", "sampled, moments", "sampled, exact")
    return line_chart(
        "epsilon after 200 epochs, by the part of the records in a batch",
        "Smaller batches make sampled training cheaper and leave reshuffled training as it is.",
        Axis(words="rate"),
        Axis(words="epsilon", log=True),
        _by_method(names, [(float(rate), Training(epochs=200, rate=rate)) for rate in rates]),
    )


def noise_svg() -> str:
    """Figure 3b: epsilon after 200 epochs, by the noise."""
    sigmas = [Fraction(number) for number in range(5, 15)]
    names = ("reshuffled, zCDP", "reshuffled, exact", "sampled, zCDP estimate", "sampled, exact")
    return line_chart(
        "epsilon after 200 epochs, by the noise (rate 0.01)",
        "More noise lowers every price; that of reshuffled training most.",
        Axis(words="sigma"),
        Axis(words="epsilon", log=True),
        _by_method(names, [(float(at), Training(epochs=200, sigma=at)) for at in sigmas]),
    )


def schedules_svg() -> str:
    """Figure 4: the noise of each epoch, until the budget is spent."""
    series = []
    for name, schedule in SCHEDULES.items():
        sigmas = schedule.sigmas(affordable_epochs(schedule, budget=BUDGET))
        points = tuple(Point(epoch, float(sigma)) for epoch, sigma in enumerate(sigmas))
        series.append(Series(f"{name}, {len(points)} epochs", points))
    return line_chart(
        "noise by epoch, each until mu^2 = 1.5625 is spent",
        "Five schedules that cost the same: the faster the noise falls, the fewer epochs there are.",
        Axis(words="epoch"),
        Axis(words="sigma"),
        series,
    )


PICTURES: dict[str, Callable[[], str]] = {
    "epochs": epochs_svg,
    "noise": noise_svg,
    "rates": rates_svg,
    "schedules": schedules_svg,
}


def main() -> int:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.accounting", description="Draw what trainings cost."
    )
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="DIR")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (given.out / f"{name}.svg").write_text(draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
