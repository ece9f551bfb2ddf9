"""Where the settings of a server are: the option that names the file, and the file without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ptkstore.cli.session import Invocation

__all__ = ["config_option", "settings_file"]

Function = TypeVar("Function", bound=Callable[..., Any])


def config_option(what: str = "The settings.") -> Callable[[Function], Function]:
    """``--config FILE``; ``what`` says of what."""
    return click.option(
        "--config",
        "config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"{what} [default: sage.yaml here, else in the store, else none]",
    )


def settings_file(session: Invocation, config: Path | None = None) -> Path | None:
    """The file that was named, else the sage.yaml of the project or of the store, if there is
    one.
    """
    if config is not None:
        return config
    here, there = Path("sage.yaml"), session.path / "sage.yaml"
    return next((path for path in (here, there) if path.is_file()), None)
