"""The tables of the service on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rpc.tables_suite import ServiceTablesSuite, service

__all__ = ["service"]  # the suite's fixture


class TestSqlite(ServiceTablesSuite):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return str(tmp_path / "meta.db")


class TestPostgresql(ServiceTablesSuite):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
