"""A reverse proxy that puts the console below a prefix and takes the prefix away, as nginx does."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["proxy"]

_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def proxy(port: int, prefix: str) -> Iterator[str]:
    """The URL of a proxy in front of a port, prefix included."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on()

        def do_POST(self) -> None:
            self._pass_on()

        def _pass_on(self) -> None:
            if not self.path.startswith(prefix + "/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            inner = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                inner.request(
                    self.command,
                    self.path[len(prefix) :],
                    body=body or None,
                    headers=dict(self.headers),
                )
                answer = inner.getresponse()
                streams = answer.headers.get("content-type", "").startswith("text/event-stream")
                data = b"" if streams else answer.read()
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                if not streams:
                    self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                if streams:
                    self._stream(answer)
            finally:
                inner.close()

        def _stream(self, answer: http.client.HTTPResponse) -> None:
            """Piece by piece, until one of the two ends."""
            self.close_connection = True
            try:
                while piece := answer.read1():
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:
                pass

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="proxy")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
