"""Preparation of data with a price: what a pipeline computes before it trains, as functions of a
frame.

``dp_group_by_mean`` and ``dp_histogram`` are `Statistics` in one call, ``dp_bounds`` is `Quantiles`
over a public grid of all sizes. Each takes a frame (pandas, polars or Arrow), says what it cost
(``.cost``), and gives a value whose every use is free. No noise is made here: the mechanisms are
those of the PTKs, with their proofs.

**Neighbours** differ in one record, or in one user with at most ``records_per_unit`` records. The
price is that of the arguments, whatever the frame holds, and it is spent once the function is
called, also where it fails. Who has a ledger registers the PTK of the value (``.ptk``) instead.
"""

from ptklib.preprocessing.bounds import EstimatedBounds, dp_bounds
from ptklib.preprocessing.group_means import GroupMeans, dp_group_by_mean
from ptklib.preprocessing.histogram import Histogram, dp_histogram

__all__ = [
    "EstimatedBounds",
    "GroupMeans",
    "Histogram",
    "dp_bounds",
    "dp_group_by_mean",
    "dp_histogram",
]
