"""Projects to start from: the directories in ``ptkstore/templates``, copied as they are.

Reasons: TEMPLATE_UNKNOWN, PROJECT_EXISTS.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from ptklib.errors import InvalidInput

__all__ = ["begin", "begin_with", "templates"]

# A file of this name would act on our own repository; it is renamed when it is written.
_RENAMED = {"gitignore": ".gitignore"}


def templates() -> list[str]:
    """The names of all templates."""
    return sorted(
        template.name for template in _root().iterdir() if template.joinpath("sage.yaml").is_file()
    )


def begin(template: str, directory: Path) -> list[Path]:
    """Copy a template into a directory, all of it or nothing where a file is in the way; the paths
    that were written.
    """
    if template not in templates():
        raise InvalidInput(
            "TEMPLATE_UNKNOWN",
            f"template must be one of {', '.join(templates())}, got {template!r:.60}",
            template=template,
        )
    source = _root().joinpath(template)
    return _written(
        directory,
        {
            _RENAMED.get(entry.name, entry.name): entry.read_bytes()
            for entry in sorted(source.iterdir(), key=lambda entry: entry.name)
            if entry.is_file()
        },
    )


def begin_with(project: str, directory: Path) -> list[Path]:
    """Write a project of one's own, with what keeps keys out of a repository; all of it or
    nothing.
    """
    ignored = _root().joinpath("taxi").joinpath("gitignore").read_bytes()
    return _written(directory, {".gitignore": ignored, "sage.yaml": project.encode()})


def _written(directory: Path, files: Mapping[str, bytes]) -> list[Path]:
    contents = {directory / name: content for name, content in files.items()}
    taken = [str(path) for path in contents if path.exists()]
    if taken:
        raise InvalidInput(
            "PROJECT_EXISTS",
            f"{', '.join(taken)} must not be there: nothing was written, name another directory",
            files=taken,
        )
    directory.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        with path.open("xb") as file:
            file.write(content)
    return list(contents)


def _root() -> Traversable:
    return files("ptkstore").joinpath("templates")
