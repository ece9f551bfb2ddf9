"""YAML with lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptklib.errors import InvalidInput
from ptkstore.cli.project.document import MAX_VALUES, Document

TEXT = """\
# a comment
streams:
  - name: rides
    columns:
      - {name: a, type: int8}
      - name: b
        type: bool
empty:
"""


def test_values_are_plain_and_know_their_lines() -> None:
    document = Document.parse(TEXT, name="x.yaml")
    columns = [{"name": "a", "type": "int8"}, {"name": "b", "type": "bool"}]
    assert document.body == {"streams": [{"name": "rides", "columns": columns}], "empty": None}
    assert document.line(("streams",)) == 2
    assert document.line(("streams", 0, "columns", 1, "type")) == 7
    assert document.line(("streams", 0, "columns", 1, "missing")) == 6
    assert document.where(("streams", 0, "columns", 0)) == "x.yaml line 5"


def test_json_is_yaml() -> None:
    assert Document.parse('{"a": [1, 2.5, null, "x"]}', name="x").body == {"a": [1, 2.5, None, "x"]}


def test_nothing_is_a_document_too() -> None:
    assert Document.parse("", name="x").body is None
    assert Document.parse("# only a comment\n", name="x").line(("a",)) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "line 3"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' is given twice"),
        ("a: 1\n? [x]\n: 2\n", "line 2: a key must be text"),
        ("1: 2\n", "line 1: a key must be text"),
        ("a:\n  - !!python/object:os.system {}\n  - !!python/name:os.system x\n", "line 3"),
        ("a: &x [*x]\n", "too deep"),
        ("a: 1\n---\nb: 2\n", "line 2"),
        ("a: 2026-02-31\n", "not YAML"),
        ("\x00", "not YAML"),
        ("[" * 2000, "too deep"),
    ],
)
def test_what_is_not_a_plain_document_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match="PROJECT_UNREADABLE") as caught:
        Document.parse(text, name="x.yaml")
    assert words in caught.value.message


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert MAX_VALUES < 10**12
    with pytest.raises(InvalidInput, match="too long"):
        Document.parse("\n".join(lines), name="x.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\xfa")
    for name in ("missing.yaml", "binary.yaml", "."):
        with pytest.raises(InvalidInput, match="FILE_UNREADABLE"):
            Document.read(tmp_path / name)
