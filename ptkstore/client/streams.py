"""Streams behind a server: create, list, feed and close their windows. Reasons: those of
`pushing` and of the server.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ptkstore.api import views
from ptkstore.client.channel import Connection
from ptkstore.client.operations import finished
from ptkstore.client.requests import fresh_id
from ptkstore.v1 import stream_pb2, stream_pb2_grpc
from ptkstore.wire import messages

if TYPE_CHECKING:
    from ptkstore.api.stream_spec import StreamSpec
    from ptkstore.client.pushing import RemotePusher

__all__ = ["RemoteStreams"]


class RemoteStreams:
    """StreamService, and the end of the operations that it begins."""

    _connection: Connection

    @cached_property
    def _streams(self) -> stream_pb2_grpc.StreamServiceStub:
        return self._connection.stub(stream_pb2_grpc.StreamServiceStub)

    def create_stream(self, spec: StreamSpec) -> None:
        """Make a stream with its promise, which never changes. Refused: STREAM_EXISTS."""
        request = stream_pb2.CreateStreamRequest(
            request_id=fresh_id(), spec_json=spec.to_json_text()
        )
        self._connection.call(self._streams.CreateStream, request)

    def streams(self) -> list[StreamSpec]:
        """All streams, by name."""
        pages = self._connection.pages(self._streams.ListStreams, stream_pb2.ListStreamsRequest())
        return [messages.spec_of(stream) for page in pages for stream in page.streams]

    def stream(self, name: str) -> StreamSpec:
        """One stream. Refused: STREAM_UNKNOWN."""
        return messages.spec_of(
            self._connection.call(
                self._streams.GetStream, stream_pb2.GetStreamRequest(name=name)
            ).stream
        )

    def push(
        self, stream: str, frame: Any, *, producer: str = "default", seq: int | None = None
    ) -> int | None:
        """Append a frame; durable when it returns. Returns the watermark in milliseconds."""
        return self._frames.push(stream, frame, producer=producer, seq=seq)

    @cached_property
    def _frames(self) -> RemotePusher:
        """NumPy and Arrow are imported when something is pushed."""
        from ptkstore.client.pushing import RemotePusher

        return RemotePusher(self._connection, self.stream)

    def run(
        self,
        stream: str | None = None,
        *,
        until_ms: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> list[views.CycleView]:
        """Seal what is due, finish interrupted cycles, and run every complete window; one report
        each.
        """
        names = [stream] if stream is not None else [stream.name for stream in self.streams()]
        cycles = []
        for name in names:
            request = stream_pb2.CloseWindowRequest(
                request_id=fresh_id(), stream=name, until=messages.moment(until_ms)
            )
            operation = self._connection.call(self._streams.CloseWindow, request).operation
            cycles += finished(self._connection, operation.id, progress or (lambda _text: None))
        return cycles
