"""sage init: a project to start from, never over somebody's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptklib.errors import InvalidInput
from ptkstore.cli.project.templates import begin, templates
from tests.cli.sage import call

FILES = [".gitignore", "make_rides.py", "sage.yaml"]


def test_there_is_a_template() -> None:
    assert templates() == ["taxi"]


def test_into_a_new_directory_here_and_below(tmp_path: Path) -> None:
    body = call("init", "a/b", "--json", cwd=tmp_path).json
    assert body == {"template": "taxi", "files": [f"a/b/{name}" for name in FILES]}
    assert sorted(one.name for one in (tmp_path / "a/b").iterdir()) == FILES
    assert "next: sage apply" in call("init", cwd=tmp_path).out
    assert "next: cd c && sage apply" in call("init", "-t", "taxi", "c", cwd=tmp_path).out


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_written_where_a_file_is_in_the_way(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InvalidInput, match="PROJECT_EXISTS"):
        begin("taxi", tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_repository_never_gets_the_keys(tmp_path: Path) -> None:
    begin("taxi", tmp_path)
    ignored = (tmp_path / ".gitignore").read_text().splitlines()
    assert {"/keys/", "/ledger.db*", "/meta.db*", "/streams/", "/lake/"} <= set(ignored)


def test_names_do_not_lead_out_of_the_templates(tmp_path: Path) -> None:
    for name in ("..", "../cli", "", ".", "/etc"):
        with pytest.raises(InvalidInput, match="TEMPLATE_UNKNOWN"):
            begin(name, tmp_path)
