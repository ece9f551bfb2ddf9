from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptkstore.streams.blocks import frames
from ptkstore.streams.blocks.cipher import MAC_BYTES, BlockCipher
from ptkstore.streams.blocks.frames import DATA, Header, frame_pieces, read_frame, unlock

PIECE = 256
HEADER = Header(DATA, 3, "producer", seq=7, part=1, parts=2, settled=11)


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "PIECE_BYTES", PIECE)


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("start", [0, 1, 100, PIECE - 1, PIECE, 5 * PIECE + 130])
@pytest.mark.parametrize(
    "size", [0, 1, 50, 127, 128, 255, 256, 257, 383, 384, 385, 511, 512, 640, 1000, 5000]
)
def test_the_pieces_of_a_frame_are_the_frame_whatever_its_size_and_place(
    tmp_path: Path, start: int, size: int
) -> None:
    cipher, plain = BlockCipher(os.urandom(32)), os.urandom(size)
    pieces = [bytes(one) for one in frame_pieces(cipher, "s", "b", HEADER, plain, start)]
    ends = [start + sum(map(len, pieces[: count + 1])) for count in range(len(pieces))]
    assert all(end % PIECE == 0 for end in ends[:-1])
    assert all(len(one) >= PIECE // 2 for one in pieces[:-1])
    assert all(len(one) <= 2 * PIECE + len(pieces[0]) for one in pieces)
    path = tmp_path / "file"
    path.write_bytes(bytes(start) + b"".join(pieces))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        frame = read_frame(descriptor, start, path.stat().st_size)
        assert frame is not None
        assert (frame.header, frame.stop) == (HEADER, ends[-1])
        assert frame.stop - frame.body_start == size + MAC_BYTES
        found = unlock(cipher, "s", "b", frame, descriptor)
        assert found is not None
        assert bytes(found) == plain
        assert unlock(cipher, "s", "other", frame, descriptor) is None
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("short_pieces")
def test_a_byte_changed_in_any_piece_is_found(tmp_path: Path) -> None:
    cipher = BlockCipher(os.urandom(32))
    whole = b"".join(
        bytes(one) for one in frame_pieces(cipher, "s", "b", HEADER, os.urandom(1500), 0)
    )
    path = tmp_path / "file"
    for place in range(100, len(whole), 50):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        descriptor = os.open(path, os.O_RDONLY)
        try:
            frame = read_frame(descriptor, 0, len(whole))
            assert frame is not None
            assert unlock(cipher, "s", "b", frame, descriptor) is None
        finally:
            os.close(descriptor)


def test_frames_never_share_a_nonce() -> None:
    cipher = BlockCipher(os.urandom(32))
    made = {
        b"".join(bytes(one) for one in frame_pieces(cipher, "s", "b", HEADER, b"same", 0))
        for _ in range(100)
    }
    assert len(made) == 100


def read_back(path: Path, body: bytes) -> frames.Frame | None:
    path.write_bytes(body)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return read_frame(descriptor, 0, len(body))
    finally:
        os.close(descriptor)


def test_a_header_with_a_changed_byte_is_no_frame(tmp_path: Path) -> None:
    """A length or an ordinal that was never written must not lead anybody on through the file."""
    cipher, plain = BlockCipher(os.urandom(32)), os.urandom(400)
    whole = b"".join(bytes(one) for one in frame_pieces(cipher, "s", "b", HEADER, plain, 0))
    assert read_back(tmp_path / "file", whole) is not None
    for place in range(len(whole) - len(plain) - MAC_BYTES):
        for bit in range(8):
            changed = whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
            assert read_back(tmp_path / "file", changed) is None, (place, bit)


def test_a_frame_that_the_file_ends_in_is_no_frame(tmp_path: Path) -> None:
    cipher, plain = BlockCipher(os.urandom(32)), os.urandom(400)
    whole = b"".join(bytes(one) for one in frame_pieces(cipher, "s", "b", HEADER, plain, 0))
    for length in range(len(whole)):
        assert read_back(tmp_path / "file", whole[:length]) is None, length
