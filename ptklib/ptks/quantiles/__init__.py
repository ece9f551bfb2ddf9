"""Quantiles of a value by public keys, any number of them for the price of one."""

from ptklib.ptks.quantiles.ptk import MAX_BINS, MAX_EDGE, Quantiles

__all__ = ["MAX_BINS", "MAX_EDGE", "Quantiles"]
