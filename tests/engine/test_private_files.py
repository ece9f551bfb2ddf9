"""What lies in a store's directory can be read by the store's own account alone, whatever the
umask; old stores are closed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptkstore import Store
from ptkstore.engine.safekeeping.backup import make_backup
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec

DATABASES = ("ledger.db", "meta.db")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def readable(path: Path) -> list[str]:
    """Files that others can get at: whose mode lets them, and all directories above, below
    ``path``.
    """
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if Path(folder, name).stat().st_mode & 0o077]
        found += [name for name in names if Path(folder, name).stat().st_mode & 0o077]
    return sorted(found)


def test_nobody_else_can_read_anything_of_a_store_or_a_backup(tmp_path: Path) -> None:
    with Store(tmp_path / "store", workers=0) as store:
        store.create_stream(spec())
        store.register("p", stream="rides", kind="statistics", config=config(), target=0.3)
        store.push("rides", day(0))
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert {f"{name}-wal" for name in DATABASES} <= {
            one.name for one in (tmp_path / "store").iterdir()
        }
        assert readable(tmp_path / "store") == []
        make_backup(store.parts, tmp_path / "backup")
    assert readable(tmp_path / "backup") == []


def test_an_older_store_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    Store(tmp_path, workers=0).close()
    for name in DATABASES:
        (tmp_path / name).chmod(0o644)
    (tmp_path / "lake").chmod(0o755)
    with Store(tmp_path, workers=0):
        assert [(tmp_path / name).stat().st_mode & 0o777 for name in DATABASES] == [0o600, 0o600]
        assert (tmp_path / "lake").stat().st_mode & 0o077 == 0
