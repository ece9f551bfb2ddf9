"""StreamService: create streams, feed them, seal them, close their windows."""

from __future__ import annotations

from collections.abc import Iterator

from ptkstore.client import Store
from ptkstore.engine.counting import arrived_until, seal_due
from ptkstore.engine.creating import create_stream
from ptkstore.metadata import Transaction
from ptkstore.metadata.operations import OperationRow
from ptkstore.rpc.appending import Appender
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.happenings import operation_view
from ptkstore.rpc.messages import json_object, millis, moment, operation_message, stream_message
from ptkstore.rpc.pages import Page
from ptkstore.rpc.running import Runner
from ptkstore.streams import StreamSpec
from ptkstore.streams.spans import Spans
from ptkstore.v1 import stream_pb2

__all__ = ["Streams"]


class Streams:
    """See the contract."""

    def __init__(self, store: Store, appender: Appender, runner: Runner) -> None:
        """Serve a store."""
        self._store = store
        self._appender = appender
        self._runner = runner
        self._known: dict[str, stream_pb2.Stream] = {}

    def create_stream(self, request: stream_pb2.CreateStreamRequest, call: Call) -> stream_pb2.CreateStreamResponse:
        """See the contract."""
        spec = StreamSpec.from_json(json_object(request.spec_json, "spec_json"))
        spans = Spans(spec)
        answer = stream_pb2.CreateStreamResponse(stream=stream_message(spec, spans.first * spans.span_ms))
        create_stream(self._store.home, spec, within=lambda tx: call.once.keep(tx, answer))
        return answer

    def get_stream(self, request: stream_pb2.GetStreamRequest, _call: Call) -> stream_pb2.GetStreamResponse:
        """See the contract."""
        return stream_pb2.GetStreamResponse(stream=self._message(self._store.stream(request.name)))

    def list_streams(self, request: stream_pb2.ListStreamsRequest, call: Call) -> stream_pb2.ListStreamsResponse:
        """See the contract."""
        page = Page("streams", request.page_size, request.page_token, kind=str)
        seen = [one for one in self._store.streams() if call.caller.sees_stream(one.name)]
        found = [one for one in seen if page.after is None or one.name > page.after][: page.size + 1]
        part, token = page.cut(found, lambda one: one.name)
        return stream_pb2.ListStreamsResponse(streams=[self._message(one) for one in part], next_page_token=token)

    def append(self, incoming: Iterator[bytes], call: Call) -> Iterator[stream_pb2.AppendResponse]:
        """See the contract."""
        return self._appender.append(incoming, call)

    def seal_stream(self, request: stream_pb2.SealStreamRequest, call: Call) -> stream_pb2.SealStreamResponse:
        """See the contract."""
        home, spec, until_ms = self._store.home, self._store.stream(request.name), millis(request, "until")
        until_ms = arrived_until(home, spec, until_ms)
        # Which blocks it seals follows from where it begins and ends, whoever comes between and whatever has expired since.
        span = call.once.note({"from_ms": home.writer(spec.name).watermark_ms, "until_ms": until_ms})
        seal_due(home, spec.name, span["until_ms"])
        spans = Spans(spec)
        numbers = range(span["from_ms"] // spans.span_ms, span["until_ms"] // spans.span_ms)
        return stream_pb2.SealStreamResponse(blocks=[spans.name(one) for one in numbers])

    def close_window(self, request: stream_pb2.CloseWindowRequest, call: Call) -> stream_pb2.CloseWindowResponse:
        """See the contract."""
        spec = self._store.stream(request.stream)
        answer = stream_pb2.CloseWindowResponse()

        def within(tx: Transaction, row: OperationRow) -> None:
            answer.operation.CopyFrom(operation_message(operation_view(tx, row)))
            call.once.keep(tx, answer)

        self._runner.start(spec.name, millis(request, "until"), within)
        return answer

    def _message(self, spec: StreamSpec) -> stream_pb2.Stream:
        # A specification never changes, and spelling it out takes longer than all the rest.
        message = stream_pb2.Stream()
        message.CopyFrom(self._known.get(spec.name) or self._known.setdefault(spec.name, stream_message(spec, None)))
        watermark = moment(self._store.home.watermark_ms(spec.name))
        assert watermark is not None
        message.watermark.CopyFrom(watermark)
        return message
