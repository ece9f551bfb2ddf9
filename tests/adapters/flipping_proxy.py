"""A proxy on loopback that changes bytes of the first requests that pass: a network that hurts what
it carries.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class FlippingProxy:
    """Forwards connections to ``port``; changes ``old`` to ``new`` (of the same length) in the
    first ``times`` it is seen.
    """

    def __init__(self, port: int, old: bytes, new: bytes, times: int) -> None:
        assert len(old) == len(new)
        self._target = port
        self._old, self._new = old, new
        self.left = times
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FlippingProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._pump, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, False), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, hurts: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                if hurts and self.left and self._old in data:
                    self.left -= 1
                    data = data.replace(self._old, self._new)
                target.sendall(data)
        except OSError:
            pass
        finally:
            for one in (source, target):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
