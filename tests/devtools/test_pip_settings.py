"""What pip was told reaches uv: every setting that decides where archives come from and who is
trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from devtools.pip_settings import UvSettings, for_uv

MIRROR, OTHER = "https://mirror.example/simple", "https://other.example/simple"
CASES: dict[str, tuple[str, Mapping[str, str], Mapping[str, str]]] = {
    "nothing": ("", {}, {}),
    "index": (f"global.index-url='{MIRROR}'", {}, {"UV_DEFAULT_INDEX": MIRROR}),
    "a section goes before the general one": (
        f"install.index-url='{OTHER}'\nglobal.index-url='{MIRROR}'",
        {},
        {"UV_DEFAULT_INDEX": OTHER},
    ),
    "a variable goes before both": (
        f":env:.index-url='{MIRROR}'\nglobal.index-url='{OTHER}'\ninstall.index-url='{OTHER}'",
        {},
        {"UV_DEFAULT_INDEX": MIRROR},
    ),
    "another command's section does not count": (f"download.index-url='{MIRROR}'", {}, {}),
    "uv was told": (f"global.index-url='{MIRROR}'", {"UV_DEFAULT_INDEX": OTHER}, {}),
    "uv was told in its older word": (f"global.index-url='{MIRROR}'", {"UV_INDEX_URL": OTHER}, {}),
    "several indexes": (
        f"global.extra-index-url='{MIRROR}\\n{OTHER}'",
        {},
        {"UV_INDEX": f"{MIRROR} {OTHER}", "UV_INDEX_STRATEGY": "unsafe-best-match"},
    ),
    "certificate": (
        "global.cert='/etc/ca.pem'\n:env:.client-cert='/etc/me.pem'",
        {},
        {"SSL_CERT_FILE": "/etc/ca.pem", "SSL_CLIENT_CERT": "/etc/me.pem"},
    ),
    "certificate that pip's client reads": (
        "",
        {"REQUESTS_CA_BUNDLE": "/etc/ca.pem"},
        {"SSL_CERT_FILE": "/etc/ca.pem"},
    ),
    "certificate that uv knows": (
        "global.cert='/etc/ca.pem'",
        {"SSL_CERT_FILE": "/etc/own.pem"},
        {},
    ),
    "proxy": (
        "global.proxy='gate:3128'",
        {},
        dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://gate:3128"),
    ),
    "proxy that uv knows": (
        "global.proxy='gate:3128'",
        {"https_proxy": "x", "http_proxy": "x"},
        {},
    ),
    "hosts": (
        "global.trusted-host='one.example two.example:80'",
        {},
        {"UV_INSECURE_HOST": "one.example two.example:80"},
    ),
    "timeout": (":env:.default-timeout='180'", {}, {"UV_HTTP_TIMEOUT": "180"}),
    "timeout with a part": ("global.timeout='7.5'", {}, {"UV_HTTP_TIMEOUT": "7"}),
    "keyring": ("global.keyring-provider='subprocess'", {}, {"UV_KEYRING_PROVIDER": "subprocess"}),
    "a value with quotes": (
        'global.index-url="https://it\'s.example"',
        {},
        {"UV_DEFAULT_INDEX": "https://it's.example"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_setting_of_pip_in_the_words_of_uv(case: str) -> None:
    listed, environ, variables = CASES[case]
    assert for_uv(listed, environ) == UvSettings(variables)


@pytest.mark.parametrize(
    ("told", "options"),
    [("true", ("--no-index",)), ("1", ("--no-index",)), ("false", ()), ("0", ())],
)
def test_without_an_index(told: str, options: tuple[str, ...]) -> None:
    assert for_uv(f":env:.no-index='{told}'", {}).options == options


def test_folders_that_are_not_there_are_passed_over_as_pip_does(tmp_path: Path) -> None:
    listed = f":env:.find-links='{tmp_path} {tmp_path}/none https://mirror.example/wheels'"
    assert for_uv(listed, {}).variables == {
        "UV_FIND_LINKS": f"{tmp_path},https://mirror.example/wheels"
    }
