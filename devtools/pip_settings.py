"""What pip is configured with, in the words of uv, which does not read pip's configuration.

A machine behind a mirror of its own has said so to pip: in a file, or in variables such as
``PIP_INDEX_URL``. `for_uv` turns what ``pip config list`` prints into variables and options of uv.
What the caller has told uv already is left as it is. Variables and not options wherever uv has
both: an index may have a password in its address, and options can be read by every user of the
machine.

Only the standard library is imported: this runs before anything is installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["UvSettings", "for_uv"]

# Variables of uv that say the same as one of ours: whoever has set one of them is not overruled.
_SAME = {"UV_DEFAULT_INDEX": ("UV_INDEX_URL",), "UV_INDEX": ("UV_EXTRA_INDEX_URL",)}
# What pip's own client reads besides its configuration.
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_FALSE = {"", "0", "false", "n", "no", "off"}


@dataclass(frozen=True)
class UvSettings:
    """Variables to add to the environment of uv, and options to call it with."""

    variables: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()


def for_uv(listed: str, environ: Mapping[str, str]) -> UvSettings:
    """``listed`` is what ``pip config list`` printed; ``environ`` the environment that uv will be
    started in.
    """
    told = _told(listed)
    variables: dict[str, str] = {}
    if index := told.get("index-url"):
        variables["UV_DEFAULT_INDEX"] = index
    if more := told.get("extra-index-url", "").split():
        variables["UV_INDEX"] = " ".join(more)
        # As pip does: the archive may be in any of them. The lock's digests say which archive it
        # is.
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    # pip passes over a folder that is not there, and uv stops.
    if links := [
        link for link in told.get("find-links", "").split() if "://" in link or Path(link).is_dir()
    ]:
        variables["UV_FIND_LINKS"] = ",".join(links)
    if hosts := told.get("trusted-host", "").split():
        variables["UV_INSECURE_HOST"] = " ".join(hosts)
    if cert := told.get("cert") or next(
        (environ[name] for name in _CERTIFICATES if environ.get(name)), None
    ):
        variables["SSL_CERT_FILE"] = cert
    if client := told.get("client-cert"):
        variables["SSL_CLIENT_CERT"] = client
    if proxy := told.get("proxy"):
        variables["HTTP_PROXY"] = variables["HTTPS_PROXY"] = (
            proxy if "://" in proxy else f"http://{proxy}"
        )
    if seconds := re.match(r"\d+", told.get("timeout") or told.get("default-timeout") or ""):
        variables["UV_HTTP_TIMEOUT"] = seconds[0]
    if told.get("keyring-provider") == "subprocess":
        variables["UV_KEYRING_PROVIDER"] = "subprocess"
    return UvSettings(
        {name: value for name, value in variables.items() if not _is_set(name, environ)},
        () if told.get("no-index", "").lower() in _FALSE else ("--no-index",),
    )


def _told(listed: str) -> dict[str, str]:
    """Each setting as ``pip install`` sees it: variables first, then its section, then the general
    one.
    """
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        match = re.fullmatch(r"(global|install|:env:)\.([a-z0-9-]+)=('.*'|\".*\")", line)
        if match is not None:
            sections[match[1]][match[2]] = str(ast.literal_eval(match[3]))
    return sections["global"] | sections["install"] | sections[":env:"]


def _is_set(name: str, environ: Mapping[str, str]) -> bool:
    return any(
        environ.get(spelling) or environ.get(spelling.lower())
        for spelling in (name, *_SAME.get(name, ()))
    )
