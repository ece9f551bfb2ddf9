"""Mistakes in the feature models and in what serves them; `tests.mutations` makes them one at a time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OF_PTKS", "Mutation"]


@dataclass(frozen=True)
class Mutation:
    """One mistake: ``old`` becomes ``new`` in ``path``, and one of ``tests`` must fail; of those that ``only`` selects."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    only: str = ""


def _in(path: str, tests: tuple[str, ...], *rows: tuple[str, str, str]) -> list[Mutation]:
    paths = tuple(f"tests/ptks/test_{name}.py" for name in tests)
    return [Mutation(name, f"ptklib/{path}", old, new, paths) for name, old, new in rows]


def _audited(path: str, only: str, *rows: tuple[str, str, str]) -> list[Mutation]:
    """Noticed by the empirical audit of the kind."""
    return [
        Mutation(name, f"ptklib/{path}", old, new, ("tests/auditing/test_kinds.py",), only) for name, old, new in rows
    ]


_COUNTS = [
    *_in(
        "ptks/counts_budget.py",
        ("counts", "counts_privacy"),
        (
            "counts: every table at the whole epsilon",
            "LaplaceRelease(epsilon=share * level, sensitivity=records)",
            "LaplaceRelease(epsilon=level, sensitivity=records)",
        ),
        ("counts: rows of a hash for free", "shares = [weight / whole / row for", "shares = [weight / whole for"),
        (
            "counts: a user's records for the price of one",
            "sigma=records * sigma / math.sqrt(share)",
            "sigma=sigma / math.sqrt(share)",
        ),
        ("counts: rows not priced", "tables[share] += row", "tables[share] += 1"),
    ),
    *_in(
        "ptks/counts.py",
        ("counts", "counts_privacy"),
        (
            "counts: noise of the wrong table",
            "made.releases[place + 1] is release",
            "made.releases[place + 1] is not None",
        ),
        ("counts: records without a label count", "keep = labels < classes", "keep = labels <= classes"),
        (
            "counts: variances of windows forgotten",
            'arrays["variances"] = arrays["variances"] + previous["variances"]',
            "pass",
        ),
    ),
    *_in(
        "ptks/counts_estimate.py",
        ("counts",),
        ("counts: rare values shrink too much", "SPREAD = 0.1", "SPREAD = 0.5"),
        ("counts: the smallest row, which noise drags down", "np.median(rows, axis=0)", "np.min(rows, axis=0)"),
    ),
    *_in(
        "ptks/hashing.py",
        ("hashing", "counts"),
        ("hashing: a null is a value", "codes[absent] = self.width", "codes[absent] = 0"),
    ),
]

_STATISTICS = [
    *_in(
        "ptks/quantiles.py",
        ("quantiles",),
        (
            "quantiles: the levels of the tree for the price of one",
            "l1=levels, l2_squared=levels,",
            "l1=1, l2_squared=levels,",
        ),
        (
            "quantiles: gaussian levels for the price of one",
            "l1=levels, l2_squared=levels,",
            "l1=levels, l2_squared=1,",
        ),
        ("quantiles: a distribution that falls", "        below.sort(axis=1)\n", ""),
        ("quantiles: values that are no numbers count", "codes[bad] = self._cells.unknown * bins", "pass"),
    ),
    *_in(
        "ptks/noisy_totals.py",
        ("quantiles", "ratios"),
        (
            "totals: a user's records for the price of one",
            "return LaplaceRelease(epsilon=epsilon, sensitivity=records * l1)",
            "return LaplaceRelease(epsilon=epsilon, sensitivity=l1)",
        ),
        (
            "totals: the root of a sensitivity rounded down",
            "Fraction(math.isqrt(square * _ROOT_STEP**2) + 1, _ROOT_STEP)",
            "Fraction(math.isqrt(square * _ROOT_STEP**2), _ROOT_STEP)",
        ),
    ),
    *_in(
        "ptks/ratios_forms.py",
        ("ratios",),
        ("ratios: the larger form for both", "ceil(max(map(sum, moved)))", "ceil(max(map(max, moved)))"),
        ("ratios: a corner of the records forgotten", "            (Fraction(steps), steps / slope),\n", ""),
    ),
    *_in(
        "ptks/ranking.py",
        ("ranking",),
        (
            "ranking: the last are first",
            'placed[np.argsort(-totals, kind="stable")]',
            'placed[np.argsort(totals, kind="stable")]',
        ),
    ),
    *_in(
        "ptks/corners.py",
        ("statistics",),
        (
            "statistics: corners that do not add up",
            "np.stack([steps * n - w, w], axis=1)",
            "np.stack([steps * n, w], axis=1)",
        ),
    ),
]

_FOREST = [
    *_in(
        "ptks/forest_budget.py",
        ("forest_privacy",),
        ("forest: all inputs for the price of one", "sensitivity=reach * shape.features)", "sensitivity=reach)"),
        (
            "forest: all levels for the price of one",
            "level, chance, moved = epsilon * part / shape.depth,",
            "level, chance, moved = epsilon * part,",
        ),
        ("forest: a user's delta not divided", "delta=chance / records, sensitivity", "delta=chance, sensitivity"),
        ("forest: gaussian shares all at the whole", "/ math.sqrt(part) * (1 + _MARGIN)", "* (1 + _MARGIN)"),
    ),
    *_in(
        "ptks/forest_splits.py",
        ("forest_privacy",),
        (
            "forest: half the sensitivity of squared errors",
            "HALF_RANGE_STEPS = STEPS**2 // 2",
            "HALF_RANGE_STEPS = STEPS**2 // 4",
        ),
        (
            "forest: half the sensitivity of impurities",
            "HALF_RANGE_CLASSES = _UNITS",
            "HALF_RANGE_CLASSES = _UNITS // 2",
        ),
    ),
    *_in(
        "ptks/forest_records.py",
        ("forest", "forest_privacy"),
        ("forest: records without a label count", "if bad.any():", "if bad.all():"),
    ),
    *_in(
        "ptks/forest_trees.py",
        ("forest",),
        ("forest: trees walked the other way", "node += code > threshold[place]", "node += code >= threshold[place]"),
    ),
]

_EMBEDDINGS = [
    *_in(
        "ptks/hpf_plan.py",
        ("hpf",),
        (
            "embeddings: a user's events for the price of one",
            "math.isqrt(square * records - 1) + 1",
            "math.isqrt(square - 1) + 1",
        ),
        ("embeddings: one update priced", "(self.tastes.cost,) * self.updates)", "(self.tastes.cost,))"),
        ("embeddings: every update at the whole", "(1 - whole) / updates)", "1 - whole)"),
        ("embeddings: counts for free", "STEPS**2 + COUNT_UNITS**2 + SQUARE_UNITS**2,", "STEPS**2,"),
    ),
    *_in(
        "ptks/hpf.py",
        ("hpf",),
        ("embeddings: features rounded up", "np.trunc(features", "np.rint(features"),
    ),
    *_in(
        "ptks/embeddings.py",
        ("embeddings",),
        (
            "embeddings: pairs counted often",
            "make = Events.of if plan.records == 1 else Events.pairs",
            "make = Events.of",
        ),
        ("embeddings: vectors of users at user level", 'if self.publish == "both" and plan.records > 1:', "if False:"),
    ),
    *_in(
        "ptks/hpf_training.py",
        ("hpf",),
        (
            "embeddings: tastes without noise",
            "noisy = self.plan.tastes.release(sums.astype(np.int64), source=self.noise).values",
            "noisy = sums.astype(np.int64)",
        ),
    ),
    *_audited(
        "ptks/hpf_training.py",
        "stays_within_its_claim and embeddings",
        (
            "embeddings: counts with an unnoised lowest bit",
            "noisy = self.plan.activity.release(totals, source=self.noise).values",
            "noisy = self.plan.activity.release(totals, source=self.noise).values // 2 * 2 + totals % 2",
        ),
        (
            "embeddings: tastes with an unnoised lowest bit",
            "noisy = self.plan.tastes.release(sums.astype(np.int64), source=self.noise).values",
            "noisy = self.plan.tastes.release(s := sums.astype(np.int64), source=self.noise).values // 2 * 2 + s % 2",
        ),
    ),
]

_VECTORS = [
    *_in(
        "ptks/vectors.py",
        ("vectors",),
        ("vectors: longer than the norm by rounding", "* (1 - 2.0**-40)", "* (1 + 2.0**-8)"),
    ),
    *_in(
        "ptks/covariance.py",
        ("covariance",),
        (
            "covariance: the constant for free",
            "return self._constant**2 + self._space.limit",
            "return self._space.limit",
        ),
        (
            "covariance: a user's records for the price of one",
            "trace = count_of(records_per_unit) * self._trace",
            "trace = self._trace",
        ),
    ),
    *_in(
        "ptks/covariance_noise.py",
        ("covariance_noise",),
        (
            "covariance: one Wishart matrix, which bounds the truth",
            "normal[0] @ normal[0].T - normal[1] @ normal[1].T",
            "normal[0] @ normal[0].T",
        ),
        ("covariance: half the noise", "float(self.scale / (2 * self.grain))", "float(self.scale / (4 * self.grain))"),
    ),
    *_in(
        "ptks/clusters_noise.py",
        ("clusters_noise",),
        (
            "clusters: a cube of one dimension less",
            "geometric((len(left), self.width + 1)",
            "geometric((len(left), self.width)",
        ),
    ),
    *_in(
        "ptks/clusters.py",
        ("clusters",),
        (
            "clusters: every iteration at the whole",
            "CubeRelease(epsilon=epsilon * share",
            "CubeRelease(epsilon=epsilon",
        ),
        ("clusters: a user's records for the price of one", "_cubes(level, records * STEPS", "_cubes(level, STEPS"),
    ),
    *_in(
        "ptks/clusters_grid.py",
        ("clusters",),
        (
            "clusters: a record of more than one weight",
            "self._parts * one - place, axis, 0",
            "self._parts * one, axis, 0",
        ),
    ),
]

_SERVING = [
    *_in(
        "featurize.py",
        ("featurize",),
        ("featurize: a name is taken twice", "if name in owners:", "if name in owners and prefix:"),
        (
            "featurize: a column of the frame is hidden",
            "named_features(listed, taken=column_names(frame))",
            "named_features(listed)",
        ),
    ),
    *_in(
        "export.py",
        ("export",),
        ("export: not tried before it is written", "    _check(state, plan)\n", ""),
        ("export: a name becomes code", "name=ascii(manifest.name)", 'name="\'" + manifest.name + "\'"'),
    ),
    *_in(
        "serving.py",
        ("export",),
        ("serving: changed arrays are read", "if hashlib.sha256(data).hexdigest() != sha256:", "if False:"),
    ),
]

OF_PTKS: list[Mutation] = [*_COUNTS, *_STATISTICS, *_FOREST, *_EMBEDDINGS, *_VECTORS, *_SERVING]
