"""What the console carries: in the wheel, and as npm published it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from devtools.servers.cache import ServerMissing
from ptkstore.console.page.rendering import STATIC, templates
from tests.console.packages import ROOT
from tests.console.vendoring import VENDOR, published


def test_what_others_wrote_is_what_they_published() -> None:
    try:
        wanted = published()
    except ServerMissing as missing:
        if os.environ.get("REQUIRE_SERVERS") == "1":
            pytest.fail(f"a server is missing, and REQUIRE_SERVERS=1: {missing}", pytrace=False)
        pytest.skip(f"a server is missing: {missing}")
    assert {one.name for one in VENDOR.iterdir()} == {one.name for one in wanted} | {
        "versions.json"
    }
    assert [path.name for path, data in wanted.items() if path.read_bytes() != data] == []
    assert {one.name for one in wanted if one.suffix == ".LICENSE"} == {
        "htmx.LICENSE",
        "uPlot.LICENSE",
    }


def test_every_template_is_read() -> None:
    for name in templates().list_templates():
        templates().get_template(name)


def test_our_own_files_name_no_other_host() -> None:
    for path in (*STATIC.glob("*"), *(ROOT / "ptkstore/console/templates").iterdir()):
        if path.is_file():
            text = path.read_text().replace("http://www.w3.org/2000/svg", "")
            assert "http" not in text.replace("https://", "http://"), path.name
            assert "//" not in text.replace("// ", ""), path.name


def test_the_wheel_has_templates_and_static_files(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
    ]
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    here = ROOT / "ptkstore/console"
    wanted = {
        str(path.relative_to(ROOT))
        for path in (*here.glob("templates/*"), *here.glob("static/**/*"), *here.rglob("*.py"))
        if path.is_file()
    }
    assert len(wanted) > 20
    assert wanted <= inside
    assert not {name for name in inside if "axe" in name or name.startswith("tests/")}
