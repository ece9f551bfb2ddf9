"""PTKs of a package that is not ours: installed for one test, here and in worker processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from ptklib import registry

__all__ = ["installed"]

# A mean of the rides' speed that does something else besides, when it sees data.
_BODY = """
import os
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from tests.ptks.broken import Average

@dataclass(frozen=True, kw_only=True)
class Other(Average):
    kind: ClassVar[str] = "other"
    path: str = ""

    def analytic_profile(self, target, levels, delta=0, *, records_per_unit=1):
        return tuple(100 for _ in levels)

    def train_dp(self, batches, **options):
        listed = list(batches)
        # In worker processes alone: rehearsals on invented records happen in the engine, which is the process of the test.
        if sum(one.num_rows for one in listed) and os.getpid() != {engine}:
            self.misbehave(listed)
        made = dict(super().train_dp(listed, **options))
        told = self.__dict__.get("told")
        return made if told is None else made | {"count": np.array([told])}

    def misbehave(self, listed):
{deed}
"""


@contextmanager
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, deed: str) -> Iterator[None]:
    """The kind ``other``, whose training in a worker process does ``deed`` when there are records."""
    named = folder / "other_ptk-1.0.dist-info"
    named.mkdir(parents=True)
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: other-ptk\nVersion: 1.0\n")
    (named / "entry_points.txt").write_text("[ptklib.ptks]\nother = other_ptk:Other\n")
    indented = "\n".join(f"        {line}" for line in dedent(deed).strip().splitlines())
    (folder / "other_ptk.py").write_text(
        _BODY.replace("{deed}", indented).replace("{engine}", str(os.getpid()))
    )
    monkeypatch.syspath_prepend(str(folder))
    registry.kinds.cache_clear()
    try:
        yield
    finally:
        registry.kinds.cache_clear()
        sys.modules.pop("other_ptk", None)
