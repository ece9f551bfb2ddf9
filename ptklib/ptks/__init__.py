"""The PTKs that come with the library, one module each; `ptklib.registry` finds them by their entry
points.
"""

from __future__ import annotations

__all__: list[str] = []
