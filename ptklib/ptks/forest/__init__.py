"""Forests of decision trees with differential privacy: leaves, class probabilities, or a
regression.
"""

from ptklib.ptks.forest.ptk import Forest

__all__ = ["Forest"]
