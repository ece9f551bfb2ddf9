"""Questions and answers of plans as bytes, for processes of ours.

Values of the engine travel as they are, but for two. A PTK goes as its row and is made there, once
for each configuration. A filter goes as its numbers and is made once, for it remembers demands.
Both ends run the same code: these bytes are kept nowhere and come from nobody else.
"""

from __future__ import annotations

import io
import json
import pickle
from functools import lru_cache
from typing import Any

from ptklib.privacy.filters import Filter, filter_from_json
from ptkstore.engine.plans.planning import Candidate

__all__ = ["packed", "unpacked"]

_CANDIDATE, _FILTER = "candidate", "filter"


def packed(value: Any) -> bytes:
    """A value as bytes."""
    target = io.BytesIO()
    _Packer(target, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return target.getvalue()


def unpacked(data: bytes) -> Any:
    """The value of `packed`."""
    return _Unpacker(io.BytesIO(data)).load()


class _Packer(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, Candidate):
            return _CANDIDATE, value.row, value.measured
        if isinstance(value, Filter):
            return _FILTER, json.dumps(value.as_json(), sort_keys=True)
        return None


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, facts: Any) -> Any:
        what, *rest = facts
        if what == _FILTER:
            return _filter(*rest)
        row, measured = rest
        return Candidate(row, Candidate.of(row).ptk, measured)


@lru_cache(maxsize=256)
def _filter(text: str) -> Filter:
    return filter_from_json(json.loads(text))
