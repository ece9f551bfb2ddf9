"""The page of the settings is made from their classes, and says something of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from devtools.settings_page import PAGE, all_settings, page
from ptkstore.settings import Settings

GUIDE = Path(__file__).parents[2] / "docs/guides/server.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "python -m devtools.settings_page --write"


@pytest.mark.parametrize("section", all_settings())
def test_every_setting_has_words(section: str) -> None:
    doc, settings = all_settings()[section]
    assert doc
    assert settings
    assert [one.key for one in settings if not one.words] == []


def test_every_default_of_the_page_is_one_of_the_file() -> None:
    """What the page says is the default can be written down and changes nothing."""
    written = 0
    for section, (_, settings) in all_settings().items():
        for one in settings:
            if section in Settings.model_fields and one.default.startswith("`"):
                name = one.key.removeprefix(f"{section}.")
                told = {section: {name: yaml.safe_load(one.default.strip("`"))}}
                assert Settings.checked(told, "the page") == Settings.checked({}, "nothing"), (
                    one.key
                )
                written += 1
    assert written > 10


def test_the_examples_of_the_guide_are_accepted() -> None:
    examples = re.findall(r"^```yaml\n(server:.*?)^```", GUIDE.read_text(), flags=re.M | re.S)
    assert len(examples) >= 2
    for example in examples:
        Settings.checked(yaml.safe_load(example), "the guide").require_protection()
