"""PTKs that are alike, as classes: prices for a thousand PTKs with a hundred unknowns.

Prices need not be free for a bound to hold; they may be tied. Within a class the price of a PTK is
its least area (samples times demand, which every plan must find room for) times one unknown.
Classes are cut where they are heaviest and least alike: a PTK is described by the samples it needs
at a handful of demands.
"""

from __future__ import annotations

import heapq

import numpy as np

from allocator.table import Floats, Ints, OptionTable

__all__ = ["classes_of", "least_areas"]

_POINTS = 8


def least_areas(table: OptionTable) -> Floats:
    """Samples times demand at each PTK's option of least area, in records of full capacity; at
    least a trace of one.
    """
    areas = (table.samples.astype(np.float64) * table.demands).min(axis=1) / max(1, table.capacity)
    return np.asarray(np.maximum(areas, 1e-9 * max(1.0, float(areas.max()))))


def classes_of(table: OptionTable, count: int) -> Ints:
    """The class of each PTK: at most ``count`` of them, numbered from 0."""
    weights = least_areas(table)
    points = np.quantile(table.demands, np.linspace(0.05, 1.0, _POINTS))
    far = float(table.samples.max()) * 4
    features = np.empty((len(table), _POINTS))
    for k, point in enumerate(points):
        reached = np.where(table.demands <= point, table.samples, np.inf).min(axis=1)
        features[:, k] = np.log(np.minimum(reached, far))
    classes = np.zeros(len(table), dtype=np.int64)
    heap = [_entry(features, weights, np.arange(len(table)), 0)]
    made = 1
    while heap and made < count:
        _, _, inside, feature = heapq.heappop(heap)
        if feature < 0:
            break
        order = inside[np.argsort(features[inside, feature], kind="stable")]
        passed = np.cumsum(weights[order])
        cut = int(np.clip(np.searchsorted(passed, passed[-1] / 2), 1, len(order) - 1))
        kept, moved = np.sort(order[:cut]), np.sort(order[cut:])
        classes[moved] = made
        heapq.heappush(heap, _entry(features, weights, kept, int(classes[kept[0]])))
        heapq.heappush(heap, _entry(features, weights, moved, made))
        made += 1
    return classes


def _entry(
    features: Floats, weights: Floats, inside: Ints, number: int
) -> tuple[float, int, Ints, int]:
    """For the heap, most urgent first: (urgency, number, PTKs, the feature to cut along or -1)."""
    own = features[inside]
    spread = own.max(axis=0) - own.min(axis=0)
    feature = int(spread.argmax())
    if len(inside) < 2 or spread[feature] <= 0:
        return 0.0, number, inside, -1
    return -float(weights[inside].sum() * np.sqrt(own[:, feature].std())), number, inside, feature
