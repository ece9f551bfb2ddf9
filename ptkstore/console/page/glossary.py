"""Words of privacy and planning, explained where they stand: what a pointer or a focus over them
says.

The long form is in docs/concepts; each is one sentence here, for it must fit into a small box.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GLOSSARY"]

GLOSSARY: Mapping[str, str] = {
    "Best effort": "It gets an epsilon and no target: each version tells the error that came of it.",
    "Blocks": "Sealed pieces of the stream, each under its own key; a block's budget is its own.",
    "Blocks alive": "Blocks that still hold raw data; when a block retires its key is destroyed.",
    "Budget left": "What of the promise (epsilon, delta) nothing has been charged for yet.",
    "Certified gap": "By how much a better plan could be shorter at most, as has been proven.",
    "Chosen point": "The epsilon and the number of records that the newest version was trained with.",
    "Exposure": "How much raw data is held right now, and for how long it has been.",
    "Idle budget": "What of the budget of the records in the plan no PTK uses.",
    "Last cycle": "What became of the newest complete window: sealed, planned, trained, destroyed.",
    "PTKs": "Feature models trained with differential privacy: safe to keep and to hand on.",
    "PTKs that train": "Feature models trained with differential privacy that a plan has room for.",
    "Promised loss": "The error that a version stays within, with the confidence that is stated.",
    "Raw data held now": "The records that are not destroyed yet, as a differentially private count.",
    "Samples held": "The records of a window that the plan needs; the fewer, the shorter it may be.",
    "Samples used": "The records that the PTKs were trained on, with what a window had left.",
    "Speaks of": "The windows that a version summarises.",
    "Streams": "Typed sequences of records, each with a privacy promise of its own.",
    "Target": "The error that this PTK must keep: the smaller, the more records or epsilon it takes.",
    "Trains": "In which windows of its stream it is trained anew.",
}
