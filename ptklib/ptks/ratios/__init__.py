"""Ratios of the sums of two columns by public keys."""

from ptklib.ptks.ratios.ptk import STEPS, Ratios

__all__ = ["STEPS", "Ratios"]
