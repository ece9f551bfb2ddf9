from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ptklib.errors import GrantRefused, InvalidInput, SageError
from ptklib.ledger.slices import Slice, TagRange
from ptklib.privacy.costs import PureCost
from ptkstore.streams import BlockRefused, StreamDamaged
from ptkstore.streams.blocks.file import walk
from ptkstore.streams.reading.reader import MAX_ROWS
from tests.streams.rides import FIRST, SECOND, Store, batch


@pytest.fixture
def full(store: Store) -> Store:
    with store.writer() as writer:
        for seq in range(4):
            writer.append(
                batch(range(1000 * seq, 1000 * seq + 1000), hours=[k / 1000 for k in range(1000)]),
                producer="p",
                seq=seq,
            )
        writer.append(batch(range(5000, 6000), hours=1), producer="p", seq=4)
        store.seal_all(writer, 2)
    return store


def test_the_grant_is_spent_before_anything_is_read(full: Store) -> None:
    grant = full.grant([FIRST])
    assert full.ledger.fate(grant.charge) == "RESERVED"
    records = full.reader.open_slice(grant, full.ledger)
    assert full.ledger.fate(grant.charge) == "SPENT", "before the first record is asked for"
    with pytest.raises(GrantRefused) as error:
        full.reader.open_slice(grant, full.ledger)
    assert error.value.reason == "GRANT_USED"
    assert sum(len(one) for one in records) == 4000


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda store, grant: replace(grant, slices=(Slice((FIRST, SECOND)),)), "GRANT_FORGED"),
        (
            lambda store, grant: replace(grant, slices=(Slice((FIRST,), TagRange(0, 5)),)),
            "GRANT_FORGED",
        ),
        (lambda store, grant: replace(grant, charge=grant.charge + 1), "GRANT_FORGED"),
        (lambda store, grant: replace(grant, mac=bytes(32)), "GRANT_FORGED"),
        (lambda store, grant: replace(grant, stream="other"), "GRANT_WRONG_STREAM"),
        (lambda store, grant: None, "GRANT_WRONG_STREAM"),
        (lambda store, grant: (store.ledger.release(grant), grant)[1], "GRANT_RELEASED"),
        (lambda store, grant: (store.ledger.spend(grant), grant)[1], "GRANT_USED"),
    ],
)
@pytest.mark.parametrize("door", ["open_slice", "count_blocks"])
def test_without_a_good_grant_nothing_opens(
    full: Store,
    spoil: Callable[[Store, object], object],
    reason: str,
    door: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grant = spoil(full, full.grant([FIRST]))
    monkeypatch.setattr(
        "ptkstore.streams.reading.reader.unlock",
        lambda *_: pytest.fail("decrypted without a grant"),
    )
    with pytest.raises(GrantRefused) as error:
        getattr(full.reader, door)(grant, full.ledger)
    assert error.value.reason == reason


def test_only_a_ledger_spends(full: Store) -> None:
    class Generous:
        def spend(self, grant: object) -> None:
            pass

    with pytest.raises(InvalidInput) as error:
        full.reader.open_slice(full.grant([FIRST]), Generous())  # type: ignore[arg-type]
    assert error.value.reason == "LEDGER_REQUIRED"


@pytest.mark.parametrize("cuts", [1, 2, 7])
def test_tag_slices_are_disjoint_and_cover_everything(full: Store, cuts: int) -> None:
    ranges = [TagRange.of_shares(Fraction(k, cuts), Fraction(k + 1, cuts)) for k in range(cuts)]
    parts = [full.whos([FIRST], one) for one in ranges]
    assert sorted(who for part in parts for who in part) == list(range(4000))
    for part in parts:
        # Five standard deviations of a binomial; a tag that depended on the record would be far
        # out.
        assert abs(len(part) - 4000 / cuts) <= 5 * np.sqrt(4000 / cuts)
        assert part == sorted(part), "in order of arrival"


def test_a_slice_means_the_same_records_every_time(full: Store) -> None:
    tenth = TagRange.of_shares(0, "0.1")
    assert full.whos([FIRST, SECOND], tenth) == full.whos([FIRST], tenth) + full.whos(
        [SECOND], tenth
    )


def test_several_slices_of_one_grant_are_read_once_each(full: Store) -> None:
    full.grant([FIRST, SECOND])
    half, rest = TagRange.of_shares(0, "0.5"), TagRange.of_shares("0.5", 1)
    slices = [Slice((FIRST, SECOND), half), Slice((FIRST,), rest)]
    grant = full.ledger.reserve("rides", slices, PureCost(epsilon="0.01"))
    found = [
        one
        for part in full.reader.open_slice(grant, full.ledger)
        for one in part.column("who").to_pylist()
    ]
    assert len(found) == len(set(found))
    assert sorted(found) == sorted([*full.whos([FIRST]), *full.whos([SECOND], half)])


def test_the_last_tag_is_inside_and_the_tag_column_is_not(full: Store) -> None:
    top = TagRange(2**64 - 2**60, 2**64)
    inside = set(full.whos([FIRST], top))
    assert full.whos([FIRST], top) == [who for who in full.whos([FIRST]) if who in inside]
    batches = list(full.reader.open_slice(full.grant([FIRST]), full.ledger))
    assert {tuple(one.schema.names) for one in batches} == {("at", "who", "note")}
    assert all(one.num_rows <= MAX_ROWS for one in batches)


def test_large_frames_come_in_pieces(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch(range(MAX_ROWS * 2 + 5)), producer="p", seq=1)
        blocks = store.seal_all(writer, 1)
    sizes = [len(one) for one in store.reader.open_slice(store.grant(blocks), store.ledger)]
    assert sizes == [MAX_ROWS, MAX_ROWS, 5]


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("2026-01-01T02:00Z", "BLOCK_NOT_SEALED"),
        ("2026-01-09T02:00Z", "BLOCK_NOT_SEALED"),
        ("2026-01-01T00:10Z", "BLOCK_UNKNOWN"),
        ("../ledger", "BLOCK_UNKNOWN"),
        (f"quarantine-{FIRST}", "BLOCK_UNKNOWN"),
    ],
)
def test_blocks_that_cannot_be_opened(full: Store, block: str, reason: str) -> None:
    with full.writer() as writer:
        writer.append(batch([1], hours=2), producer="p", seq=9)
    with pytest.raises(BlockRefused) as error:
        full.whos([block])
    assert error.value.reason == reason


def test_an_expired_block_is_refused(full: Store) -> None:
    with full.writer() as writer:
        writer.expire(FIRST)
    with pytest.raises(BlockRefused) as error:
        full.whos([FIRST])
    assert error.value.reason == "BLOCK_EXPIRED"
    assert full.whos([SECOND]) == list(range(5000, 6000))


def frames(store: Store, name: str) -> list[bytes]:
    path = store.path / f"streams/rides/{name}.block"
    descriptor = os.open(path, os.O_RDONLY)
    body = path.read_bytes()
    try:
        return [body[one.start : one.frame.stop] for one in walk(descriptor)]
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda a: a[:-1], id="seal removed"),
        pytest.param(lambda a: a[1:], id="first frame removed"),
        pytest.param(lambda a: [*a[:-2], a[-1]], id="last frame removed"),
        pytest.param(lambda a: [a[1], a[0], *a[2:]], id="frames swapped"),
        pytest.param(lambda a: [a[0], *a], id="frame repeated"),
        pytest.param(lambda a: [*a, b"x"], id="bytes behind the seal"),
        pytest.param(lambda a: [a[0][:-1] + bytes([a[0][-1] ^ 1]), *a[1:]], id="mac changed"),
        pytest.param(
            lambda a: [a[0][:200] + bytes([a[0][200] ^ 1]) + a[0][201:], *a[1:]], id="body changed"
        ),
        pytest.param(lambda a: [], id="emptied"),
    ],
)
def test_a_file_that_was_tampered_with_is_noticed(
    full: Store, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    path = full.path / f"streams/rides/{FIRST}.block"
    path.write_bytes(b"".join(change(frames(full, FIRST))))
    with pytest.raises(StreamDamaged) as error:
        full.whos([FIRST])
    assert error.value.reason == "FRAME_DAMAGED"
    assert dict(error.value.details) == {"stream": "rides", "block": FIRST}


def test_a_frame_does_not_pass_for_one_of_another_block(full: Store) -> None:
    for folder, suffix in (("streams", "block"), ("keys", "key")):
        shutil.copy(
            full.path / f"{folder}/rides/{SECOND}.{suffix}",
            full.path / f"{folder}/rides/{FIRST}.{suffix}",
        )
    with pytest.raises(StreamDamaged):
        full.whos([FIRST])


def test_counts_leave_with_noise_only(full: Store) -> None:
    cost = full.spec.count_release().cost
    errors = []
    for _ in range(60):
        full.grant([FIRST, SECOND])
        grant = full.ledger.reserve("rides", [Slice((FIRST, SECOND))], cost)
        found = full.reader.count_blocks(grant, full.ledger)
        assert list(found) == [FIRST, SECOND]
        errors += [found[FIRST] - 4000, found[SECOND] - 1000]
    # Discrete Laplace of scale 100: the mean absolute error is about 100, and 120 draws stay within
    # 40% of it.
    assert 60 < np.mean(np.abs(errors)) < 150
    assert len(set(errors)) > 40


def test_a_count_of_an_empty_block_is_noise_too(store: Store) -> None:
    with store.writer() as writer:
        blocks = store.seal_all(writer, 5)
    store.grant(blocks)
    counts = store.reader.count_blocks(
        store.ledger.reserve("rides", [Slice(tuple(blocks))], store.spec.count_release().cost),
        store.ledger,
    )
    assert any(counts.values())


def test_errors_do_not_carry_contents(full: Store) -> None:
    """Every refusal of the package is made of names; the note of a record is in none of them."""
    secret = "the-secret-note"
    with full.writer() as writer:
        with pytest.raises(SageError) as error:
            writer.append(batch([1], note=secret).select(["note"]), producer="p", seq=21)
        assert secret not in repr(error.value) + str(dict(error.value.details))
        ack = writer.append(batch([None], note=secret), producer="p", seq=21)  # type: ignore[list-item]
        assert ack.refused
        assert secret not in repr(ack)
