"""``python -m tests.deploy.make_store FILE``: a small store as this release leaves it, for later
releases to open.

One for each schema of the metadata is kept in tests/deploy/stores; make one before a release
changes the schema. The archive has ``sqlite/``, a store in a directory; ``postgres/``, the
directory of a store whose metadata and ledger are in PostgreSQL; and ``postgres.sql``, that
database. Both have trained on one day and have the records of the next.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from devtools.servers.cache import tell
from devtools.servers.postgres import start_postgres
from devtools.servers.recipes import get
from ptkstore import LocalStore, Store
from ptkstore.server import open_store
from ptkstore.settings import Settings
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec

ROWS = 400


def fill(store: LocalStore) -> None:
    """One day trained on, and the records of the next."""
    store.create_stream(spec())
    store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.6)
    store.register("rest-speed", stream="rides", kind="statistics", config=config(), epsilon="0.1")
    store.push("rides", day(0, ROWS), seq=0)
    (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
    assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}, cycle
    store.push("rides", day(1, ROWS), seq=1)


def make(to: Path) -> None:
    """Both stores, and the dump, in one archive."""
    postgres = start_postgres(tell)
    with tempfile.TemporaryDirectory() as folder, postgres.database() as url:
        root = Path(folder)
        with Store(root / "sqlite", workers=0) as store:
            fill(store)
        sections = {"metadata": {"url": url}, "ledger": {"url": url}, "workers": {"processes": 0}}
        with open_store(root / "postgres", Settings.checked(sections, "here")) as store:
            fill(store)
        command = [
            str(get("postgres", tell) / "pg_dump"),
            "--no-owner",
            f"--file={root / 'postgres.sql'}",
            url,
        ]
        subprocess.run(command, check=True, env={**os.environ})
        with tarfile.open(to, "w:gz") as archive:
            for name in ("sqlite", "postgres", "postgres.sql"):
                archive.add(root / name, name)
    postgres.server.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
