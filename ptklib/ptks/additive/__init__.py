"""Additive models with differential privacy: a term for each input, boosted in turn."""

from ptklib.ptks.additive.ptk import Additive

__all__ = ["Additive"]
