"""Calls that send their headers and never a message: raw HTTP/2, because no gRPC client would do
such a thing.

Headers are literals without indexing, so that nothing of HPACK's state is needed to write them;
what the server answers is not read further than that it ended a stream, and how.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from types import TracebackType
from typing import Self

__all__ = ["SilentConnection"]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_INITIAL_WINDOW = 4
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4


class SilentConnection:
    """One connection on which many calls are begun and none says anything."""

    def __init__(self, address: str, *, window: int | None = None) -> None:
        """``window`` is how many bytes the server may send on a call before it is told that they
        were read; it never is.
        """
        host, _, port = address.rpartition(":")
        self._authority = address
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._next = 1
        # How the server ended a stream: "status" (with trailers) or "reset".
        self.ended: dict[int, str] = {}
        self.closed = False
        settings = b"" if window is None else struct.pack(">HI", _INITIAL_WINDOW, window)
        self._socket.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, settings))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(
        self, method: str, count: int, *, token: str | None = None, message: bytes = b""
    ) -> list[int]:
        """Begin so many calls and leave them open; ``message`` is sent on each, framed as one
        message of gRPC.
        """
        fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", self._authority),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]
        if token is not None:
            fields.append(("authorization", f"Bearer {token}"))
        block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields)
        body = b"\x00" + struct.pack(">I", len(message)) + message
        begun = [self._next + 2 * number for number in range(count)]
        self._next += 2 * count
        for stream in begun:
            frames = _frame(_HEADERS, _END_HEADERS, stream, block)
            self._send(frames + (_frame(_DATA, 0, stream, body) if message else b""))
        return begun

    def open_calls(self, begun: list[int]) -> list[int]:
        """Those that the server has not ended."""
        with self._changed:
            return [one for one in begun if one not in self.ended] if not self.closed else []

    def wait_until_ended(self, begun: list[int], seconds: float) -> bool:
        """True when all of them ended in time."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not self.closed and any(one not in self.ended for one in begun):
                if not self._changed.wait(deadline - time.monotonic()):
                    return False
        return True

    def close(self) -> None:
        """Leave, without a word."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, data: bytes) -> None:
        with self._sending:
            self._socket.sendall(data)

    def _read(self) -> None:
        try:
            with self._socket.makefile("rb") as incoming:
                while len(head := incoming.read(9)) == 9:
                    length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
                    stream, payload = int.from_bytes(head[5:]) & 0x7FFFFFFF, incoming.read(length)
                    self._heard(kind, flags, stream, payload)
        except (OSError, ValueError):
            pass  # closed, by us or by them
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _heard(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            self._send(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._send(_frame(_PING, _ACK, 0, payload))
        elif kind == _RESET or (kind == _HEADERS and flags & _END_STREAM):
            with self._changed:
                self.ended.setdefault(stream, "reset" if kind == _RESET else "status")
                self._changed.notify_all()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _text(text: str) -> bytes:
    """A literal of HPACK, not compressed."""
    raw = text.encode()
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    rest, length = len(raw) - 127, b"\x7f"
    while rest >= 128:
        length, rest = length + bytes([rest % 128 + 128]), rest // 128
    return length + bytes([rest]) + raw
