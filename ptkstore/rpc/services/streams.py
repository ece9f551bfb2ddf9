"""StreamService: create streams, feed them, seal them, close their windows."""

from __future__ import annotations

from collections.abc import Iterator

from ptkstore.api.paging import PageRequest
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import OperationView
from ptkstore.engine.parts import Parts
from ptkstore.engine.streams.creating import create_stream
from ptkstore.engine.window.counting import arrived_until, seal_due
from ptkstore.metadata import Transaction
from ptkstore.rpc.background.running import Runner
from ptkstore.rpc.gate.dispatch import Call
from ptkstore.rpc.services.appending import Appender
from ptkstore.streams.spans import Spans
from ptkstore.v1 import stream_pb2
from ptkstore.wire.messages import json_object, millis, moment, operation_message, stream_message

__all__ = ["StreamService"]


class StreamService:
    """See the contract."""

    def __init__(self, parts: Parts, appender: Appender, runner: Runner) -> None:
        """Serve a store."""
        self._parts = parts
        self._appender = appender
        self._runner = runner
        self._known: dict[str, stream_pb2.Stream] = {}

    def create_stream(
        self, request: stream_pb2.CreateStreamRequest, call: Call
    ) -> stream_pb2.CreateStreamResponse:
        """See the contract."""
        spec = StreamSpec.from_json(json_object(request.spec_json, "spec_json"))
        spans = Spans(spec)
        answer = stream_pb2.CreateStreamResponse(
            stream=stream_message(spec, spans.first * spans.span_ms)
        )
        create_stream(self._parts, spec, within=lambda tx: call.once.keep(tx, answer))
        return answer

    def get_stream(
        self, request: stream_pb2.GetStreamRequest, _call: Call
    ) -> stream_pb2.GetStreamResponse:
        """See the contract."""
        return stream_pb2.GetStreamResponse(
            stream=self._message(self._parts.specs.named(request.name))
        )

    def list_streams(
        self, request: stream_pb2.ListStreamsRequest, call: Call
    ) -> stream_pb2.ListStreamsResponse:
        """See the contract."""
        page = PageRequest("streams", request.page_size, request.page_token, kind=str)
        seen = [spec for spec in self._parts.specs.all() if call.caller.sees_stream(spec.name)]
        stream_specs = [
            stream_spec
            for stream_spec in seen
            if page.after is None or stream_spec.name > page.after
        ][: page.size + 1]
        part, token = page.cut(stream_specs, lambda spec: spec.name)
        return stream_pb2.ListStreamsResponse(
            streams=[self._message(stream_spec) for stream_spec in part], next_page_token=token
        )

    def append(self, incoming: Iterator[bytes], call: Call) -> Iterator[stream_pb2.AppendResponse]:
        """See the contract."""
        return self._appender.append(incoming, call)

    def seal_stream(
        self, request: stream_pb2.SealStreamRequest, call: Call
    ) -> stream_pb2.SealStreamResponse:
        """See the contract."""
        parts, spec = self._parts, self._parts.specs.named(request.name)
        until_ms = arrived_until(parts, spec, millis(request, "until"))
        # Which blocks it seals follows from where it begins and ends, whoever comes between and
        # whatever has expired since.
        span = call.once.note(
            {"from_ms": parts.writer(spec.name).watermark_ms, "until_ms": until_ms}
        )
        seal_due(parts, spec.name, span["until_ms"])
        spans = Spans(spec)
        numbers = range(span["from_ms"] // spans.span_ms, span["until_ms"] // spans.span_ms)
        return stream_pb2.SealStreamResponse(blocks=[spans.name(number) for number in numbers])

    def close_window(
        self, request: stream_pb2.CloseWindowRequest, call: Call
    ) -> stream_pb2.CloseWindowResponse:
        """See the contract."""
        spec = self._parts.specs.named(request.stream)
        answer = stream_pb2.CloseWindowResponse()

        def within(tx: Transaction, operation: OperationView) -> None:
            answer.operation.CopyFrom(operation_message(operation))
            call.once.keep(tx, answer)

        self._runner.start(spec.name, millis(request, "until"), within)
        return answer

    def _message(self, spec: StreamSpec) -> stream_pb2.Stream:
        # A specification never changes, and spelling it out takes longer than all the rest.
        message = stream_pb2.Stream()
        message.CopyFrom(
            self._known.get(spec.name)
            or self._known.setdefault(spec.name, stream_message(spec, None))
        )
        watermark = moment(self._parts.watermark_ms(spec.name))
        assert watermark is not None
        message.watermark.CopyFrom(watermark)
        return message
