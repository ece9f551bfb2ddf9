"""The doctor searches a store that is being written: files come, shrink and go under its eyes."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

from ptkstore import Store
from tests.engine.small import spec


def test_files_that_go_while_they_are_searched_are_no_failure(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        store.create_stream(spec())
        over = threading.Event()

        def stir() -> None:
            number = 0
            while not over.is_set():
                number += 1
                folder = tmp_path / f"stirred-{number % 7}"
                folder.mkdir(exist_ok=True)
                for place in range(20):
                    (folder / f"{place}.draft").write_bytes(b"x" * 5_000)
                for place in range(20):
                    os.truncate(folder / f"{place}.draft", 0)
                shutil.rmtree(folder)

        threads = [threading.Thread(target=stir)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(30):
                levels = {one.what: one.level for one in store.doctor(["a canary that is nowhere"])}
                assert levels["canaries"] == "OK"
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_a_canary_across_two_parts_of_a_file_is_found(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        (tmp_path / "leak").write_bytes(b"x" * ((1 << 20) - 3) + b"canary-17" + b"x" * 10)
        levels = {one.what: one.level for one in store.doctor(["canary-17"])}
    assert levels["canaries"] == "ERROR"
