"""Streams as messages, and back."""

from __future__ import annotations

from ptkstore.rpc.messages.fields import moment
from ptkstore.streams import StreamSpec
from ptkstore.v1 import stream_pb2

__all__ = ["spec_of", "stream_message"]


def stream_message(spec: StreamSpec, watermark_ms: int | None) -> stream_pb2.Stream:
    """A stream."""
    return stream_pb2.Stream(
        name=spec.name,
        spec_json=spec.to_json_text(),
        schema_fingerprint=spec.fingerprint,
        watermark=moment(watermark_ms),
    )


def spec_of(message: stream_pb2.Stream) -> StreamSpec:
    """The specification of a stream."""
    return StreamSpec.from_json_text(message.spec_json)
