"""The page of what every RPC answers to whom is what comes back today, and it is what the rules
say.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ptkstore.api.permissions import PERMISSIONS, ROLES
from tests.rpc.calling import SERVED
from tests.rpc.permission_results import NOBODY, OTHER_PTK, OTHER_STREAM, PAGE, page, results, tried

DENIED = "PERMISSION_DENIED PERMISSION_DENIED"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    path: Path = tmp_path_factory.mktemp("tried")
    with tried(path) as clients:
        return results(clients)


def test_the_page_is_what_comes_back(found: dict[str, dict[str, str]]) -> None:
    assert PAGE.read_text() == page(found), "python -m tests.rpc.permission_results --write"


def test_what_comes_back_is_what_the_rules_say(found: dict[str, dict[str, str]]) -> None:
    for method in SERVED:
        rule, cells = PERMISSIONS[method], found[method]
        assert cells[NOBODY] == "UNAUTHENTICATED CREDENTIALS_MISSING", method
        assert {role: cells[role] for role in ROLES} == {
            role: "OK" if role in rule.roles else DENIED for role in ROLES
        }, method
        limited = {"filtered": "OK, nothing of it", "open": "OK"}.get(rule.scope, DENIED)
        assert (cells[OTHER_STREAM], cells[OTHER_PTK]) == (limited, limited), method
