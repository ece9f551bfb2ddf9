"""The durable ledger as people use it, in a file: many threads, many processes, and processes that
are killed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.book_suite import BookSuite


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


class TestBook(BookSuite):
    """Everything any journal must do."""
