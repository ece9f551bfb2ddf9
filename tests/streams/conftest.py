from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.streams import rides


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rides.Store]:
    made = rides.Store(tmp_path, rides.spec())
    yield made
    made.ledger.close()


@pytest.fixture
def users(tmp_path: Path) -> Iterator[rides.Store]:
    made = rides.Store(tmp_path, rides.user_spec())
    yield made
    made.ledger.close()
