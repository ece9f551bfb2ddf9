"""Means of groups from a noisy table: each is pulled towards what the groups have in common, by as
much as the table itself says (`means` has the whole story).
"""

from ptklib.ptks.tables.shrinkage.means import pulled_means
from ptklib.ptks.tables.shrinkage.noise import TableNoise

__all__ = ["TableNoise", "pulled_means"]
