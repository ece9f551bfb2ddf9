"""Templates and static files.

Everything in a template is escaped; links are relative, for all paths are flat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlencode

import jinja2

from ptkstore.console.page.glossary import GLOSSARY
from ptkstore.console.page.wording import FILTERS

__all__ = ["STATIC", "link", "static", "templates"]

_HERE = Path(__file__).parents[1]
STATIC = _HERE / "static"


@lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    """The templates. A name that does not exist is an error, never an empty text."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS)
    made.globals.update(GLOSSARY=GLOSSARY, link=link, static=static)
    return made


def link(path: str, values: Mapping[str, object] | None = None, **more: object) -> str:
    """A relative URL; what is None or empty is left out of its query."""
    query = {
        name: value for name, value in {**(values or {}), **more}.items() if value not in (None, "")
    }
    return path + ("?" + urlencode(query) if query else "")


@lru_cache(maxsize=64)
def static(name: str) -> str:
    """The relative URL of a static file, with its digest: browsers keep it until it changes."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"static/{name}?v={digest}"
