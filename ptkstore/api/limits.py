"""How much one answer of a store tells, wherever the store is. What is asked for beyond it is
refused.
"""

from __future__ import annotations

__all__ = ["MAP_BLOCKS", "MAP_BLOCKS_MOST", "MAX_CONFIGS"]

# Blocks in a map of the ledger, unless another number is asked for.
MAP_BLOCKS = 96
MAP_BLOCKS_MOST = 2000
# Configurations of one PTK.
MAX_CONFIGS = 100
