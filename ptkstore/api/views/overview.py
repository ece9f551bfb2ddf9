"""A store at a glance, for notebooks: its streams and PTKs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ptklib.encoding.notebook import html_of
from ptkstore.api.views.ptks import PtkView

__all__ = ["store_html"]


def store_html(specs: Iterable[Mapping[str, Any]], ptk_views: Iterable[PtkView]) -> str:
    """The streams (as JSON) with their promises, and the PTKs with what they are asked for."""
    streams = [
        {
            "stream": spec["name"],
            "unit": spec["unit"],
            **{name: spec["policy"][name] for name in ("epsilon", "delta")},
            "window seconds": spec["window_seconds"],
        }
        for spec in specs
    ]
    ptks = [
        {
            "ptk": view.name,
            "stream": view.stream,
            "kind": view.kind,
            "status": view.status,
            "target": view.asked,
            "version": view.latest_version,
        }
        for view in ptk_views
    ]
    return html_of("Store", {"streams": streams, "PTKs": ptks})
