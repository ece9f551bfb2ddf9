"""The noise samplers: how fast they are, and the evidence that their laws are exact.

Speed is compared with OpenDP's integer mechanisms (exact, `OPENDP_DRAWS` draws at a time because
they are slow) and with numpy's float generators (fast, not private), at `SCALES`; rounds are
interleaved and the best of each counts, so that a busy machine hurts both alike. Exactness is
judged by mpmath, which the library does not use:

* the float64 positions against their proven bound, at random and at adversarial cells;
* draws forced through the slow path, with cells that hold a boundary and with planted later bits;
* frequencies of a hundred million draws against the closed forms, and against a wrong scale, which
  must be rejected.
"""

from __future__ import annotations

import importlib
import time
import tracemalloc
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib.privacy.noise import sampler
from ptklib.privacy.noise.exact import settle

__all__ = ["SAMPLERS", "expected", "fit", "forced_agreement", "position", "run", "slack"]

SCALES = ("1", "10", "1000", "1e6", "1e9")
DRAWS = 1_000_000
OPENDP_DRAWS = 50_000
MEMORY_DRAWS = 20_000_000
LAW_SCALES = ("0.5", "1", "2", "5")
LAW_DRAWS = 100_000_000

SAMPLERS: dict[str, Callable[..., NDArray[np.int64]]] = {
    "Laplace": sampler.discrete_laplace,
    "geometric": sampler.geometric,
    "Gaussian": sampler.rounded_gaussian,
}
_LAWS = {
    "Laplace": sampler._laplace_law,
    "geometric": sampler._geometric_law,
    "Gaussian": sampler._gaussian_law,
}
_WORD = 2**64

# A context of our own: mpmath's global one may be in use elsewhere.
_mp: Any = mpmath.MPContext()
_mp.prec = 320


def run(say: Say) -> Report:
    report = Report()
    sampler._self_test()  # once per process, not part of a draw
    _against_opendp(report, say)
    _against_numpy(report, say)
    _memory(report, say)
    _evidence(report, say)
    _frequencies(report, say)
    return report


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _against_opendp(report: Report, say: Say) -> None:
    # Not at the top: tests of the samplers use this module's oracles and need no OpenDP.
    dp: Any = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    makers: dict[str, Callable[[float], Any]] = {
        "Laplace": lambda scale: dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale),
        "Gaussian": lambda scale: dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale),
    }
    zeros = [0] * OPENDP_DRAWS
    rows = []
    for name, make in makers.items():
        say(f"{name}: against OpenDP")
        ratios = []
        for scale in SCALES:
            theirs_of = make(float(scale))
            ours, theirs = 9e9, 9e9
            for _ in range(3):
                ours = min(ours, _seconds(partial(SAMPLERS[name], DRAWS, scale)) / DRAWS)
                theirs = min(theirs, _seconds(partial(theirs_of, zeros)) / OPENDP_DRAWS)
            ratios.append(theirs / ours)
            rows.append(
                {
                    "law": name,
                    "scale": scale,
                    "ours_per_s": f"{1 / ours:.3g}",
                    "opendp_per_s": f"{1 / theirs:.3g}",
                }
            )
        report.bars.append(
            at_least(f"{name} draws/s, times OpenDP's, worst over scales 1..1e9", min(ratios), 100)
        )
    report.figures["against OpenDP"] = rows


def _against_numpy(report: Report, say: Say) -> None:
    generator = np.random.default_rng()
    theirs_of = {"Laplace": generator.laplace, "Gaussian": generator.normal}
    rows = []
    for name, draw in theirs_of.items():
        say(f"{name}: against numpy")
        ratios = []
        for scale in SCALES:
            ours, theirs = [], []
            for _ in range(15):
                ours.append(_seconds(partial(SAMPLERS[name], DRAWS, scale)))
                theirs.append(_seconds(partial(draw, 0.0, float(scale), DRAWS)))
            ratios.append(min(theirs) / min(ours))
            rows.append(
                {
                    "law": name,
                    "scale": scale,
                    "ours_M_per_s": round(DRAWS / min(ours) / 1e6, 1),
                    "numpy_M_per_s": round(DRAWS / min(theirs) / 1e6, 1),
                    "ratio_of_medians": round(float(np.median(theirs) / np.median(ours)), 2),
                }
            )
        report.bars.append(
            at_least(f"{name} draws/s, times numpy's floats, worst over scales", min(ratios), 0.40)
        )
    report.figures["against numpy"] = rows


def _memory(report: Report, say: Say) -> None:
    for name, draw in SAMPLERS.items():
        say(f"{name}: memory of {MEMORY_DRAWS:,} draws")
        draw(1, 10)
        tracemalloc.start()
        draw(MEMORY_DRAWS, 10)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        report.bars.append(
            at_most(
                f"{name} peak memory / output, {MEMORY_DRAWS:,} draws", peak / MEMORY_DRAWS / 8, 1.1
            )
        )


def _evidence(report: Report, say: Say) -> None:
    for name in SAMPLERS:
        say(f"{name}: float64 error against mpmath")
        worst = min(
            slack(name, Fraction(scale), 2000, seed)
            for seed, scale in enumerate(("0.001", "1/3", *SCALES))
        )
        report.bars.append(at_least(f"{name} proven error bound / largest error seen", worst, 16))
    for name in SAMPLERS:
        say(f"{name}: forced slow path")
        shares = [
            forced_agreement(name, Fraction(scale), 150, seed)
            for seed, scale in enumerate(("1/3", *SCALES))
        ]
        report.bars.append(at_least(f"{name} forced slow path agrees with mpmath", min(shares), 1))
        report.bars.append(
            at_least(f"{name} tails to 2**-191 agree with mpmath", _tail_agreement(name), 1)
        )


def _frequencies(report: Report, say: Say) -> None:
    draws = LAW_DRAWS // (len(SAMPLERS) * len(LAW_SCALES))
    for name, draw in SAMPLERS.items():
        say(f"{name}: frequencies of {draws:,} draws at each of the scales {', '.join(LAW_SCALES)}")
        right, wrong = [], []
        for scale in LAW_SCALES:
            sample = draw(draws, scale)
            right.append(fit(name, sample, float(scale)))
            wrong += [fit(name, sample, float(scale) * factor) for factor in (0.7, 1.3)]
        report.bars.append(
            at_least(f"{name} chi-square p, worst over scales 0.5..5", min(right), 1e-6)
        )
        report.bars.append(
            at_most(f"{name} chi-square p against scale -30% and +30%, best", max(wrong), 1e-12)
        )


def _mpf(value: Fraction) -> Any:
    return _mp.mpf(value.numerator) / value.denominator


def position(name: str, scale: Fraction, u: Fraction) -> Any:
    """Y of the sampler's docstring, the real whose floor is the draw, by mpmath at 320 bits."""
    s, p = _mpf(scale), _mpf(u)
    if name == "Laplace":
        return s * (_mp.log(2 / (1 + _mp.exp(-1 / s))) - _mp.log(p))
    if name == "geometric":
        return -s * _mp.log(p)
    z = _mp.mpf(-special.ndtri(float(u) / 2))
    while (
        True
    ):  # Newton on the survival function, from 2**-49 on: twice as many right bits each time
        step = (_mp.erfc(z / _mp.sqrt(2)) - p) / (2 * _mp.npdf(z))
        z += step
        if abs(step) < _mp.mpf(2) ** -160:
            return s * z + _mp.mpf(1) / 2


def slack(name: str, scale: Fraction, random_cells: int, seed: int) -> float:
    """The proven bound without the width of the cell, over the error of float64, least over many
    cells.
    """
    generator = np.random.default_rng(seed)
    uniform = generator.integers(1, 2**63, random_cells)
    small = generator.integers(1, 2**63, random_cells // 4) >> generator.integers(
        0, 63, random_cells // 4
    )
    near_one = 2**63 - 1 - small
    cells = np.maximum(np.concatenate([sampler._hard_cells(), uniform, small, near_one]), 1)
    law = _LAWS[name](scale)
    y = np.empty(len(cells))
    law.position(cells, y, law.curve_for(len(cells)))
    # Errors are taken at the middle of the cell, so the width of the cell must not help the bound.
    bound = law.tolerance(y, np.full(len(cells), 2**63 - 1))
    errors = [
        float(abs(_mp.mpf(float(at)) - position(name, scale, Fraction(2 * int(u) + 1, _WORD))))
        for at, u in zip(y, cells, strict=True)
    ]
    return float(np.min(bound / np.maximum(errors, 1e-300)))


def forced_agreement(name: str, scale: Fraction, rounds: int, seed: int) -> float:
    """The share of draws, forced to be settled exactly, that equal mpmath's floor.

    Half of the cells hold the boundary of some k, so that one word more is needed; of these, half
    are given the very bits of the boundary as the next word, so that two are.
    """
    generator = np.random.default_rng(seed)
    law = _LAWS[name](scale)
    agreed = 0
    for i in range(rounds):
        u = int(generator.integers(1, 2**63))
        later = [int(word) for word in generator.integers(0, 2**64, 6, dtype=np.uint64)]
        if i % 2:
            k = max(1, int(position(name, scale, Fraction(2 * u + 1, _WORD))))
            boundary = law.tail(k, 63 + 64)[0] + 2
            u, rest = divmod(boundary, 2**64)
            later[0] = rest if i % 4 == 1 else later[0]
        agreed += _settled(law, u, later) == _floor(name, scale, u, later)
    return agreed / rounds


def _settled(law: Any, u: int, later: Sequence[int]) -> tuple[int, int]:
    """The draw with bounds unknown, and by the route of the sampler."""
    forced = iter(later)
    alone = settle(law.tail, u, 63, lambda: next(forced), 0, None)
    planted = iter(later)
    out = np.empty(1, dtype=np.int64)
    sampler._from_words(np.array([u], dtype=np.uint64), law, lambda: next(planted), out)
    return alone, int(out[0])


def _floor(name: str, scale: Fraction, u: int, later: Sequence[int]) -> tuple[int, int]:
    bits = 63
    for word in later[:3]:
        u, bits = (u << 64) | word, bits + 64
    value = int(_mp.floor(position(name, scale, Fraction(2 * u + 1, 2 ** (bits + 1)))))
    return value, value


def _tail_agreement(name: str) -> float:
    """Planted zeros: draws with U down to 2**-191, far beyond ten sigma."""
    cases = [
        (Fraction(scale), u, later)
        for scale in SCALES
        for u, later in ((1, [5, 7, 9]), (0, [2**63, 5, 7]), (0, [1, 5, 7]), (0, [0, 1, 7]))
    ]
    agreed = 0
    for scale, u, later in cases:
        later = [*later, *range(1, 30)]
        agreed += _settled(_LAWS[name](scale), u, later) == _floor(name, scale, u, later)
    return agreed / len(cases)


def expected(name: str, ks: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """P(X = k) in closed form, for frequencies."""
    q = np.exp(-1 / scale)
    if name == "Laplace":
        return np.asarray((1 - q) / (1 + q) * q ** np.abs(ks))
    if name == "geometric":
        return np.where(ks < 0, 0.0, (1 - q) * q ** np.maximum(ks, 0))
    size = np.abs(ks)
    return np.asarray(special.ndtr((0.5 - size) / scale) - special.ndtr((-0.5 - size) / scale))


def fit(name: str, sample: NDArray[np.int64], scale: float) -> float:
    """The chi-square p-value of a sample against the closed form; cells expected below 10 are
    pooled at either end.
    """
    reach = 12 + int(60 * scale)
    ks = np.arange(-reach, reach + 1)
    counts = np.bincount(np.clip(sample, -reach, reach) + reach, minlength=len(ks)).astype(float)
    hopes = expected(name, ks, scale) * len(sample)
    keep = np.flatnonzero(hopes >= 10)
    first, last = keep[0], keep[-1]
    observed = np.concatenate([[counts[:first].sum()], counts[keep], [counts[last + 1 :].sum()]])
    hoped = np.concatenate([[hopes[:first].sum()], hopes[keep], [hopes[last + 1 :].sum()]])
    if hoped[0] == 0 and observed[0] == 0:  # the geometric law has nothing below zero
        observed, hoped = observed[1:], hoped[1:]
    if np.any((hoped <= 0) & (observed > 0)):
        return 0.0
    statistic = float(np.sum((observed - hoped) ** 2 / np.maximum(hoped, 1e-300)))
    return float(stats.chi2.sf(statistic, len(hoped) - 1))
