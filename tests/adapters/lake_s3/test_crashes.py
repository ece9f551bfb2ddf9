"""A put or a sweep that is killed anywhere leaves nothing or the whole."""

from __future__ import annotations

import pytest

from ptkstore.lake import S3Lake, StateMissing, digest_of
from ptkstore.lake.s3 import lake as s3_lake
from tests.adapters.lake_s3.buckets import (
    SUFFIXES,
    Killed,
    WatchedBucket,
    dying_after,
    key_of,
    keys,
)


def test_the_manifest_comes_last_and_goes_first(watched: WatchedBucket) -> None:
    lake, done = S3Lake(watched), []
    watched.before = lambda verb, key: (
        done.append((verb, key)) if verb in {"put", "delete"} else None
    )
    digest = lake.put(b"arrays", b"manifest")
    assert done == [("put", key_of(digest, suffix)) for suffix in SUFFIXES]
    done.clear()
    lake.delete_unreferenced([], grace_seconds=-1)
    deleted = [key for verb, key in done if verb == "delete" and key.startswith("sha256/")]
    assert deleted == [key_of(digest, suffix) for suffix in reversed(SUFFIXES)]


def test_a_put_killed_anywhere_shows_nothing_or_the_whole(watched: WatchedBucket) -> None:
    lake = S3Lake(watched)
    other = lake.put(b"other", b"{}")
    seen = set()
    for alive in range(100):
        arrays, manifest = b"arrays %d" % alive, b"{1}"
        digest = digest_of(arrays, manifest)
        watched.before = dying_after(alive)
        try:
            lake.put(arrays, manifest)
            break
        except Killed:
            pass
        finally:
            del watched.before
        there = lake.exists(digest)
        seen.add(there)
        assert (digest in lake.list()) == there
        if there:
            assert lake.get(digest) == (arrays, manifest)
        else:
            with pytest.raises(StateMissing):
                lake.get(digest)
        assert lake.put(arrays, manifest) == digest
        assert lake.get(digest) == (arrays, manifest)
        assert lake.delete_unreferenced([other], grace_seconds=-1) == (digest,)
        assert keys(watched) == [key_of(other, suffix) for suffix in reversed(SUFFIXES)]
    assert alive > 3
    assert seen == {False, True}


def test_a_sweep_killed_anywhere_can_be_done_again(
    watched: WatchedBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = S3Lake(watched)
    kept = lake.put(b"kept", b"{}")

    def put_past_the_dead() -> str:
        with monkeypatch.context() as patch:
            # What the dead announced is believed for a moment only.
            patch.setattr(s3_lake, "ANNOUNCED_SECONDS", 0.05)
            return lake.put(b"gone", b"{}")

    for alive in range(100):
        gone = put_past_the_dead()
        watched.before = dying_after(alive)
        try:
            lake.delete_unreferenced([kept], grace_seconds=-1)
            break
        except Killed:
            pass
        finally:
            del watched.before
        if lake.exists(gone):
            assert lake.get(gone) == (b"gone", b"{}")
        else:
            with pytest.raises(StateMissing):
                lake.get(gone)
        put_past_the_dead()
        assert lake.get(gone) == (b"gone", b"{}")
        lake.delete_unreferenced([kept], grace_seconds=-1)
        assert lake.list() == (kept,)
    assert alive > 8
