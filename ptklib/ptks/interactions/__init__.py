"""Target encoding with interactions: means or class probabilities by key, pair and triple of keys."""

from ptklib.ptks.interactions.ptk import MAX_KEYS, Interactions

__all__ = ["MAX_KEYS", "Interactions"]
