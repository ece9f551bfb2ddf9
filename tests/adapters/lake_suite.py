"""What every lake must do. Subclass it, and give it a fixture ``lake`` that is empty."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptkstore.lake import Lake, StateMissing, digest_of

ABSENT = "0" * 64


class LakeSuite:
    """The contract of `Lake`, on any backend."""

    @pytest.mark.parametrize(
        ("arrays", "manifest"),
        [
            (b"arrays", b"{}"),
            (b"", b""),
            (bytes(range(256)) * 4096, b'{"a":"\xc3\xa9"}'),
            (b"\r\n\0", b"\n"),
        ],
        ids=["small", "empty", "large", "odd"],
    )
    def test_what_was_put_comes_back(self, lake: Lake, arrays: bytes, manifest: bytes) -> None:
        digest = lake.put(arrays, manifest)
        assert lake.get(digest) == (arrays, manifest)
        assert lake.exists(digest)
        assert lake.list() == (digest,)

    def test_the_digest_is_as_stated(self, lake: Lake) -> None:
        parts = hashlib.sha256(b"arrays").digest() + hashlib.sha256(b"{}").digest()
        assert lake.put(b"arrays", b"{}") == hashlib.sha256(b"sage state v1\n" + parts).hexdigest()

    def test_the_digest_tells_the_parts_apart(self, lake: Lake) -> None:
        pairs = [(b"ab", b"c"), (b"a", b"bc"), (b"c", b"ab"), (b"", b"abc"), (b"abc", b"")]
        assert len({lake.put(*pair) for pair in pairs}) == len(pairs)
        assert all(lake.get(digest_of(*pair)) == pair for pair in pairs)

    def test_putting_again_is_the_same(self, lake: Lake) -> None:
        assert lake.put(b"a", b"{}") == lake.put(b"a", b"{}")
        assert len(lake.list()) == 1

    def test_what_is_not_there(self, lake: Lake) -> None:
        assert not lake.exists(ABSENT)
        assert lake.list() == ()
        with pytest.raises(StateMissing, match="STATE_MISSING"):
            lake.get(ABSENT)

    @pytest.mark.parametrize(
        "digest",
        [
            "",
            "../../etc/passwd",
            "a" * 63,
            "a" * 65,
            "A" * 64,
            "/" * 64,
            "a" * 64 + "\n",
            "a" * 62 + "/.",
            None,
            b"a" * 64,
        ],
    )
    def test_only_digests_are_taken(self, lake: Lake, digest: Any) -> None:
        with pytest.raises(InvalidInput, match="DIGEST_INVALID"):
            lake.get(digest)
        with pytest.raises(InvalidInput, match="DIGEST_INVALID"):
            lake.exists(digest)
        with pytest.raises(InvalidInput, match="DIGEST_INVALID"):
            lake.delete_unreferenced([digest])
        if digest is not None:
            with pytest.raises(InvalidInput, match="DIGEST_INVALID"):
                lake.list(after=digest)

    def test_a_witness_is_replaced_and_is_no_state(self, lake: Lake) -> None:
        name, other = "a" * 64, "b" * 64
        assert lake.get_witness(name) is None
        assert lake.witnesses() == ()
        lake.put_witness(name, b"one")
        lake.put_witness(other, b"other")
        lake.put_witness(name, b"two")
        assert lake.get_witness(name) == b"two"
        assert lake.witnesses() == (name, other)
        assert lake.list() == ()
        assert lake.delete_unreferenced([], grace_seconds=0) == ()
        assert lake.get_witness(other) == b"other"
        with pytest.raises(InvalidInput, match="DIGEST_INVALID"):
            lake.put_witness("../../witness", b"")

    def test_lists_come_in_pages(self, lake: Lake) -> None:
        digests = sorted(lake.put(bytes([n]), b"{}") for n in range(20))
        assert lake.list() == tuple(digests)
        pages, after = [], None
        while page := lake.list(limit=7, after=after):
            pages.append(len(page))
            assert page == tuple(digests[sum(pages[:-1]) : sum(pages)])
            after = page[-1]
        assert pages == [7, 7, 6]
        with pytest.raises(InvalidInput, match="PAGE_INVALID"):
            lake.list(limit=0)

    def test_only_what_nobody_refers_to_is_deleted(self, lake: Lake) -> None:
        kept, gone = lake.put(b"kept", b"{}"), lake.put(b"gone", b"{}")
        assert lake.delete_unreferenced([kept, ABSENT], grace_seconds=-1) == (gone,)
        assert lake.list() == (kept,)
        assert not lake.exists(gone)
        with pytest.raises(StateMissing):
            lake.get(gone)
        assert lake.get(kept) == (b"kept", b"{}")
        assert lake.put(b"gone", b"{}") == gone
        assert lake.get(gone) == (b"gone", b"{}")

    def test_what_is_young_is_never_deleted(self, lake: Lake) -> None:
        digest = lake.put(b"young", b"{}")
        assert lake.delete_unreferenced([]) == ()
        assert lake.exists(digest)

    def test_many_put_the_same_while_others_look(self, lake: Lake) -> None:
        arrays, manifest = bytes(200_000), b"{}"
        digest = digest_of(arrays, manifest)
        start = threading.Barrier(8)

        def put(_: int) -> None:
            start.wait()
            for _ in range(5):
                assert lake.put(arrays, manifest) == digest

        def look(_: int) -> None:
            start.wait()
            for _ in range(50):
                if lake.exists(digest):
                    assert lake.get(digest) == (arrays, manifest)

        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(job, n) for n in range(4) for job in (put, look)]
            assert [job.result() for job in jobs] == [None] * 8
        assert lake.list() == (digest,)
