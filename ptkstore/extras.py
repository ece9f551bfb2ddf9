"""Packages that belong to an extra and are not installed. Reason: PACKAGE_MISSING."""

from __future__ import annotations

from ptklib.errors import SageError

__all__ = ["package_missing"]


def package_missing(package: str | None, extra: str) -> SageError:
    """The error that names the package, and the extra to install."""
    advice = f"pip install 'ptkstore[{extra}]'"
    return SageError(
        "PACKAGE_MISSING", f"the package {package} is not installed: {advice}", package=package
    )
