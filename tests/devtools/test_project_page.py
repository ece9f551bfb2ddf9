"""The page of sage.yaml is made from the classes that read it, and the examples of all guides are
read by them.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from devtools.project_page import PAGE, WORDS, page
from ptklib import registry
from ptklib.ledger.policy import Policy
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.cli.project.declaration import DeclaredPtk, Project

ROOT = Path(__file__).parents[2]
GUIDES = sorted(ROOT.glob("docs/guides/ptks/*.md"))
EXAMPLES = [
    pytest.param(block, id=f"{path.relative_to(ROOT)}-{number}")
    for path in sorted(ROOT.glob("docs/**/*.md"))
    for number, block in enumerate(
        re.findall(r"^```yaml\n((?:streams|ptks):\n.*?)^```", path.read_text(), flags=re.M | re.S)
    )
    # Others show a part.
    if "..." not in block and ("columns:" in block or block.startswith("ptks:"))
]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "python -m devtools.project_page --write"


@pytest.mark.parametrize(
    ("section", "kind"),
    [("streams", StreamSpec), ("columns", Column), ("policy", Policy), ("ptks", DeclaredPtk)],
)
def test_every_key_has_words_and_no_others(section: str, kind: type) -> None:
    assert set(WORDS[section]) == {field.name for field in dataclasses.fields(kind)}


def test_every_kind_is_on_the_page() -> None:
    for kind in registry.kinds():
        assert f"### [{kind}](" in page() or not registry.kinds()[kind].__module__.startswith(
            "ptklib"
        )


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_guide_of_a_kind_shows_it_in_yaml(guide: Path) -> None:
    assert re.search(r"^```yaml\nptks:", guide.read_text(), flags=re.M)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_is_read(block: str, tmp_path: Path) -> None:
    path = tmp_path / "sage.yaml"
    path.write_text(block)
    project = Project.read(path)
    assert project.streams or project.ptks
