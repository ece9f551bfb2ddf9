"""Streams as messages, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptkstore.v1 import stream_pb2
from ptkstore.wire.messages.fields import json_object, moment

if TYPE_CHECKING:
    from ptkstore.api.stream_spec import StreamSpec

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
    # Arrow and the filters are imported when there is one.
    from ptkstore.api.stream_spec import StreamSpec

    return StreamSpec.from_stored(json_object(message.spec_json, "spec_json"))
