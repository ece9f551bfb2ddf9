import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from ptkstore.v1 import operation_pb2 as _operation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Stream(_message.Message):
    __slots__ = ("name", "spec_json", "schema_fingerprint", "watermark")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_JSON_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec_json: str
    schema_fingerprint: str
    watermark: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., spec_json: _Optional[str] = ..., schema_fingerprint: _Optional[str] = ..., watermark: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateStreamRequest(_message.Message):
    __slots__ = ("request_id", "spec_json")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_JSON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    spec_json: str
    def __init__(self, request_id: _Optional[str] = ..., spec_json: _Optional[str] = ...) -> None: ...

class CreateStreamResponse(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: Stream
    def __init__(self, stream: _Optional[_Union[Stream, _Mapping]] = ...) -> None: ...

class GetStreamRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetStreamResponse(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: Stream
    def __init__(self, stream: _Optional[_Union[Stream, _Mapping]] = ...) -> None: ...

class ListStreamsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListStreamsResponse(_message.Message):
    __slots__ = ("streams", "next_page_token")
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    streams: _containers.RepeatedCompositeFieldContainer[Stream]
    next_page_token: str
    def __init__(self, streams: _Optional[_Iterable[_Union[Stream, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AppendRequest(_message.Message):
    __slots__ = ("open", "batch")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    open: AppendOpen
    batch: AppendBatch
    def __init__(self, open: _Optional[_Union[AppendOpen, _Mapping]] = ..., batch: _Optional[_Union[AppendBatch, _Mapping]] = ...) -> None: ...

class AppendOpen(_message.Message):
    __slots__ = ("stream", "producer", "schema_fingerprint", "begin_session", "session")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_SESSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    stream: str
    producer: str
    schema_fingerprint: str
    begin_session: bool
    session: str
    def __init__(self, stream: _Optional[str] = ..., producer: _Optional[str] = ..., schema_fingerprint: _Optional[str] = ..., begin_session: bool = ..., session: _Optional[str] = ...) -> None: ...

class AppendBatch(_message.Message):
    __slots__ = ("seq", "arrow_ipc")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ARROW_IPC_FIELD_NUMBER: _ClassVar[int]
    seq: int
    arrow_ipc: bytes
    def __init__(self, seq: _Optional[int] = ..., arrow_ipc: _Optional[bytes] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ("seq", "watermark", "session", "refused")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    seq: int
    watermark: _timestamp_pb2.Timestamp
    session: str
    refused: _containers.RepeatedCompositeFieldContainer[RefusedRecords]
    def __init__(self, seq: _Optional[int] = ..., watermark: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session: _Optional[str] = ..., refused: _Optional[_Iterable[_Union[RefusedRecords, _Mapping]]] = ...) -> None: ...

class RefusedRecords(_message.Message):
    __slots__ = ("column", "reason", "records", "first_row")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROW_FIELD_NUMBER: _ClassVar[int]
    column: str
    reason: str
    records: int
    first_row: int
    def __init__(self, column: _Optional[str] = ..., reason: _Optional[str] = ..., records: _Optional[int] = ..., first_row: _Optional[int] = ...) -> None: ...

class SealStreamRequest(_message.Message):
    __slots__ = ("request_id", "name", "until")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SealStreamResponse(_message.Message):
    __slots__ = ("blocks",)
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    blocks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, blocks: _Optional[_Iterable[str]] = ...) -> None: ...

class CloseWindowRequest(_message.Message):
    __slots__ = ("request_id", "stream", "until")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    stream: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, request_id: _Optional[str] = ..., stream: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CloseWindowResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _operation_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_operation_pb2.Operation, _Mapping]] = ...) -> None: ...
