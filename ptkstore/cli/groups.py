"""Groups of commands that are imported when they are named, and the one place where errors become
text and exit codes.

Reasons: COMMAND_USAGE, INTERNAL_ERROR, PACKAGE_MISSING, RUN_INTERRUPTED, SYSTEM_ERROR.
"""

from __future__ import annotations

import difflib
import errno
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from ptklib.errors import InvalidInput, SageError
from ptkstore.cli.output import print_error
from ptkstore.cli.session import Invocation
from ptkstore.extras import package_missing

__all__ = ["TRACEBACK_VARIABLE", "LazyGroup", "SageGroup", "exit_code"]

TRACEBACK_VARIABLE = "SAGE_TRACEBACK"

_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are named as ``module:attribute`` and shown in that order."""

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **settings: Any) -> None:
        """``lazy`` maps the name of a command to where it is."""
        super().__init__(*args, **settings)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order a newcomer meets them, not that of the alphabet."""
        return [*self._lazy, *(name for name in self.commands if name not in self._lazy)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command now that it is named."""
        where = self._lazy.get(cmd_name)
        if where is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = where.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A group by itself shows its help: a question, not a mistake."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where there is none."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"there are {', '.join(self.list_commands(ctx))}"
            )
            raise click.UsageError(
                f"{ctx.command_path} has no command {args[0]!r:.60}; {hint}", ctx
            )
        return super().resolve_command(ctx, args)


class SageGroup(LazyGroup):
    """The outermost group: every way to fail ends here, as one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and exit with what `exit_code` says (unless ``standalone_mode`` is off: then errors
        pass through).
        """
        given = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
        # Kept by the callbacks of the options; a line that cannot be parsed never gets there.
        session = Invocation(as_json="--json" in given)
        try:
            code = super().main(
                given, prog_name, complete_var, standalone_mode=False, obj=session, **extra
            )
            sys.stdout.flush()
        except Exception as error:
            _fail(error, as_json=session.as_json)
        sys.exit(code if isinstance(code, int) else 0)


def exit_code(error: BaseException) -> int:
    """2 where the request was wrong, 130 where it was interrupted, 1 otherwise."""
    if isinstance(error, click.Abort):
        return _INTERRUPTED
    return 2 if isinstance(error, InvalidInput | click.UsageError) else 1


def _fail(error: Exception, *, as_json: bool) -> NoReturn:
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        # The reader (``| head``) has left: nobody to tell. Python's own flush at exit must not
        # complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    print_error(_told(error), as_json=as_json)
    sys.exit(exit_code(error))


def _told(error: Exception) -> SageError:
    """The error as one of ours."""
    if isinstance(error, SageError):
        return error
    if isinstance(error, click.Abort):
        return SageError(
            "RUN_INTERRUPTED",
            "interrupted: running it again is safe; a training that had begun stays charged",
        )
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "sage"
        words = error.format_message().rstrip(".")
        stop = "" if words.endswith("?") else "."
        return InvalidInput("COMMAND_USAGE", f"{words}{stop} See `{path} --help`", command=path)
    if isinstance(error, click.ClickException):
        return SageError("SYSTEM_ERROR", error.format_message())
    if isinstance(error, OSError) and error.strerror:
        named = f": {error.filename}" if error.filename else ""
        return SageError("SYSTEM_ERROR", f"{error.strerror}{named}")
    if isinstance(error, ModuleNotFoundError):
        # What a store in a directory needs is always there; what is not is the service's.
        return package_missing(error.name, "server")
    # The text of an error that is not ours may quote data: only its kind is told.
    kind = type(error).__name__
    advice = f"set {TRACEBACK_VARIABLE}=1 to see where, and report it"
    return SageError(
        "INTERNAL_ERROR", f"unexpected {kind}: this is a bug of Sage; {advice}", error=kind
    )
