"""``sage ptk kinds``: what PTKs can be made of, as they are installed here.

Needs no store: kinds are entry points of this Python, and a server has its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from ptkstore.api.views import View
from ptkstore.cli.output import Table, show
from ptkstore.cli.session import Invocation, pass_session, shared_options

__all__ = ["KindField", "fields_of", "kinds"]


@dataclass(frozen=True)
class KindField(View):
    """A field of a kind's configuration: ``default`` is JSON, None where it must be given."""

    name: str
    takes: str
    default: str | None


@click.command()
@click.argument("kind", required=False)
@shared_options
@pass_session
def kinds(session: Invocation, kind: str | None) -> None:
    """List the kinds of PTK, or the fields of KIND.

    What is installed here: no store is needed.

    \b
    Examples:
      sage ptk kinds
      sage ptk kinds statistics
    """
    from ptklib import registry

    known = registry.kinds()
    if kind is None:
        rows = [(name, _first_words(kind_type)) for name, kind_type in known.items()]
        show(
            session,
            [{"kind": name, "gives": gives} for name, gives in rows],
            Table(("kind", "gives"), rows),
            "the fields of one: sage ptk kinds KIND",
        )
        return
    lines = fields_of(kind)
    show(
        session,
        {"kind": kind, "gives": _first_words(known[kind]), "fields": lines},
        f"{kind}: {_first_words(known[kind])}",
        Table(
            ("field", "default", "takes"),
            [
                (line.name, "must be given" if line.default is None else line.default, line.takes)
                for line in lines
            ],
        ),
    )


def fields_of(kind: str) -> list[KindField]:
    """The fields of a kind's configuration, those that must be given first. Reason:
    PTK_KIND_UNKNOWN.
    """
    from ptklib import registry

    if kind not in registry.kinds():
        registry.make(kind, {})  # refuses, with the kinds that there are
    schema = registry.kinds()[kind].json_schema()
    required: Sequence[str] = schema.get("required", ())
    return [
        KindField(
            name,
            _takes(body),
            None if name in required else json.dumps(body.get("default"), ensure_ascii=False),
        )
        for name, body in sorted(
            schema["properties"].items(), key=lambda item: item[0] not in required
        )
    ]


def _first_words(kind_type: type) -> str:
    return (kind_type.__doc__ or "").strip().partition("\n")[0].partition(". ")[0].rstrip(".")


def _takes(body: Mapping[str, Any]) -> str:
    """What a schema allows, in words as one writes it in YAML."""
    if "const" in body:
        return str(body["const"])
    if "enum" in body:
        return " | ".join(map(str, body["enum"]))
    if "anyOf" in body:
        words = [_takes(choice) for choice in body["anyOf"] if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    match body.get("type"):
        case "array":
            items = _takes(body["items"]) if "items" in body else "anything"
            return f"a list of ({items})" if " " in items else f"a list of {items}s"
        case "object" if "properties" in body:
            needed = body.get("required", ())
            parts = [
                f"{name}: {_takes(value)}"
                if "const" in value
                else name + "?" * (name not in needed)
                for name, value in body["properties"].items()
            ]
            return "{" + ", ".join(parts) + "}"
        case "object":
            return "keys and values"
        case "string":
            return "text"
        case "boolean":
            return "true or false"
        case kind:
            return str(kind)
