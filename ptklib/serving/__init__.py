"""Features with NumPy alone: the plan of an exported state, and what runs it.

`plan` makes it, `runner` runs it.
"""

from ptklib.serving.runner import (
    FORMAT,
    ServingError,
    load,
    pack,
    run,
)

__all__ = ["FORMAT", "ServingError", "load", "pack", "run"]
