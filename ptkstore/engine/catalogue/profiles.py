"""What is known of the samples that a PTK needs, and asking for a new profile. Reads no data, costs
nothing. Reasons: PTK_UNKNOWN, PTK_RETIRED, and those of levels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptkstore.api.views import ProfileView
from ptkstore.engine.parts import Parts
from ptkstore.engine.profiles import terms
from ptkstore.engine.within import Within, nothing

__all__ = ["profile_of", "renew"]


def profile_of(parts: Parts, name: str, levels: Sequence[str]) -> ProfileView:
    """How many samples a PTK needs at each level, as far as that is known."""
    with parts.metadata.read() as tx:
        row = tx.ptks.named(name)
        return terms.profile_view(tx, parts.specs.named(row.stream), row, levels)


def renew(parts: Parts, name: str, within: Within[ProfileView] = nothing) -> ProfileView:
    """Ask for a new profile in the next window; the old one counts until then."""
    with parts.metadata.write() as tx:
        row = tx.ptks.named(name)
        spec = parts.specs.named(row.stream)
        view = terms.renew(tx, spec, row, now_ms=parts.public_ms())
        within(tx, view)
        return view
