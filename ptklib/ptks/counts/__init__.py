"""Count featurization: noisy tables of each feature with each class of a label."""

from ptklib.ptks.counts.ptk import FEW_LINES, MAX_TOTAL_CELLS, Counts

__all__ = ["FEW_LINES", "MAX_TOTAL_CELLS", "Counts"]
