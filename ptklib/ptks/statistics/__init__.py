"""Counts, sums, means and variances by public keys, and who is on top."""

from ptklib.ptks.statistics.ptk import MAX_STEPS, STEPS, TARGETS, Statistics

__all__ = ["MAX_STEPS", "STEPS", "TARGETS", "Statistics"]
