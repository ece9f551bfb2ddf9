"""A PNG file as an array of pixels, read by the letter of its standard: eight bits, colour, not
interlaced.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["pixels"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Bytes of a pixel by type of colour: three colours, or those and how opaque they are.
_BYTES = {2: 3, 6: 4}


def pixels(data: bytes) -> NDArray[np.uint8]:
    """Height x width x (red, green, blue). Every checksum is checked."""
    assert data.startswith(_SIGNATURE)
    place, header, packed = len(_SIGNATURE), b"", b""
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", data, place + 8 + length) == (zlib.crc32(kind + body),)
        header, packed = (
            (body if kind == b"IHDR" else header),
            packed + (body if kind == b"IDAT" else b""),
        )
        place += 12 + length
    wide, tall, depth, colour, *rest = struct.unpack(">IIBBBBB", header)
    assert (depth, rest) == (8, [0, 0, 0])
    lines = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(
        tall, 1 + wide * _BYTES[colour]
    )
    found, above = [], np.zeros((wide, _BYTES[colour]), dtype=np.int64)
    for line in lines:
        above = _unfiltered(int(line[0]), line[1:].reshape(wide, -1).astype(np.int64), above)
        found.append(above)
    return np.array(found, dtype=np.uint8)[:, :, :3]


def _unfiltered(kind: int, line: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line, axis=0) % 256
    if kind == 2:
        return (line + above) % 256
    done = np.zeros_like(line)
    left, corner = np.zeros_like(line[0]), np.zeros_like(line[0])
    for k in range(len(line)):
        if kind == 3:
            guess = (left + above[k]) // 2
        else:
            reach = left + above[k] - corner
            far = np.abs(np.stack([reach - left, reach - above[k], reach - corner]))
            guess = np.choose(far.argmin(axis=0), [left, above[k], corner])
        left, corner = (line[k] + guess) % 256, above[k]
        done[k] = left
    return done
