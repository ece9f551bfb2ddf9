import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OperationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_STATUS_UNSPECIFIED: _ClassVar[OperationStatus]
    OPERATION_STATUS_RUNNING: _ClassVar[OperationStatus]
    OPERATION_STATUS_DONE: _ClassVar[OperationStatus]
    OPERATION_STATUS_FAILED: _ClassVar[OperationStatus]
OPERATION_STATUS_UNSPECIFIED: OperationStatus
OPERATION_STATUS_RUNNING: OperationStatus
OPERATION_STATUS_DONE: OperationStatus
OPERATION_STATUS_FAILED: OperationStatus

class Operation(_message.Message):
    __slots__ = ("id", "kind", "stream", "status", "progress", "cycles", "reason", "message", "create_time", "end_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    stream: str
    status: OperationStatus
    progress: str
    cycles: _containers.RepeatedCompositeFieldContainer[Cycle]
    reason: str
    message: str
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., stream: _Optional[str] = ..., status: _Optional[_Union[OperationStatus, str]] = ..., progress: _Optional[str] = ..., cycles: _Optional[_Iterable[_Union[Cycle, _Mapping]]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Cycle(_message.Message):
    __slots__ = ("stream", "window", "status", "steps", "plan_status", "dp_records", "trained", "outcomes", "shortfall", "changes")
    class OutcomesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STREAM_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PLAN_STATUS_FIELD_NUMBER: _ClassVar[int]
    DP_RECORDS_FIELD_NUMBER: _ClassVar[int]
    TRAINED_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    SHORTFALL_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    stream: str
    window: int
    status: str
    steps: _containers.RepeatedScalarFieldContainer[str]
    plan_status: str
    dp_records: int
    trained: _containers.RepeatedCompositeFieldContainer[Trained]
    outcomes: _containers.ScalarMap[str, int]
    shortfall: str
    changes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, stream: _Optional[str] = ..., window: _Optional[int] = ..., status: _Optional[str] = ..., steps: _Optional[_Iterable[str]] = ..., plan_status: _Optional[str] = ..., dp_records: _Optional[int] = ..., trained: _Optional[_Iterable[_Union[Trained, _Mapping]]] = ..., outcomes: _Optional[_Mapping[str, int]] = ..., shortfall: _Optional[str] = ..., changes: _Optional[_Iterable[str]] = ...) -> None: ...

class Trained(_message.Message):
    __slots__ = ("ptk", "outcome", "version", "epsilon", "samples", "reason", "validation", "error")
    PTK_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ptk: str
    outcome: str
    version: int
    epsilon: str
    samples: int
    reason: str
    validation: str
    error: str
    def __init__(self, ptk: _Optional[str] = ..., outcome: _Optional[str] = ..., version: _Optional[int] = ..., epsilon: _Optional[str] = ..., samples: _Optional[int] = ..., reason: _Optional[str] = ..., validation: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class GetOperationRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetOperationResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: Operation
    def __init__(self, operation: _Optional[_Union[Operation, _Mapping]] = ...) -> None: ...

class ListOperationsRequest(_message.Message):
    __slots__ = ("stream", "page_size", "page_token")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    stream: str
    page_size: int
    page_token: str
    def __init__(self, stream: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListOperationsResponse(_message.Message):
    __slots__ = ("operations", "next_page_token")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    next_page_token: str
    def __init__(self, operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchOperationRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class WatchOperationResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: Operation
    def __init__(self, operation: _Optional[_Union[Operation, _Mapping]] = ...) -> None: ...

class ListCyclesRequest(_message.Message):
    __slots__ = ("stream", "page_size", "page_token", "newest", "most_trained")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    MOST_TRAINED_FIELD_NUMBER: _ClassVar[int]
    stream: str
    page_size: int
    page_token: str
    newest: int
    most_trained: int
    def __init__(self, stream: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., newest: _Optional[int] = ..., most_trained: _Optional[int] = ...) -> None: ...

class ListCyclesResponse(_message.Message):
    __slots__ = ("cycles", "next_page_token")
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    cycles: _containers.RepeatedCompositeFieldContainer[Cycle]
    next_page_token: str
    def __init__(self, cycles: _Optional[_Iterable[_Union[Cycle, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RunDoctorRequest(_message.Message):
    __slots__ = ("canaries",)
    CANARIES_FIELD_NUMBER: _ClassVar[int]
    canaries: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, canaries: _Optional[_Iterable[bytes]] = ...) -> None: ...

class RunDoctorResponse(_message.Message):
    __slots__ = ("findings",)
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    def __init__(self, findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("level", "what", "detail")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    level: str
    what: str
    detail: str
    def __init__(self, level: _Optional[str] = ..., what: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("id", "kind", "subject", "body_json", "create_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    BODY_JSON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: int
    kind: str
    subject: str
    body_json: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[int] = ..., kind: _Optional[str] = ..., subject: _Optional[str] = ..., body_json: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("after", "page_size", "newest_first", "find", "page_token")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    FIND_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    after: int
    page_size: int
    newest_first: bool
    find: str
    page_token: str
    def __init__(self, after: _Optional[int] = ..., page_size: _Optional[int] = ..., newest_first: bool = ..., find: _Optional[str] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class WatchEventsResponse(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: Event
    def __init__(self, event: _Optional[_Union[Event, _Mapping]] = ...) -> None: ...

class GetCallerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCallerResponse(_message.Message):
    __slots__ = ("caller",)
    CALLER_FIELD_NUMBER: _ClassVar[int]
    caller: Caller
    def __init__(self, caller: _Optional[_Union[Caller, _Mapping]] = ...) -> None: ...

class Caller(_message.Message):
    __slots__ = ("name", "roles", "streams", "ptks")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    PTKS_FIELD_NUMBER: _ClassVar[int]
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    streams: _containers.RepeatedScalarFieldContainer[str]
    ptks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., streams: _Optional[_Iterable[str]] = ..., ptks: _Optional[_Iterable[str]] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("id", "ptk", "rpc_endpoint", "version", "attempts", "dead", "reason", "next_attempt_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    PTK_FIELD_NUMBER: _ClassVar[int]
    RPC_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    ptk: str
    rpc_endpoint: str
    version: int
    attempts: int
    dead: bool
    reason: str
    next_attempt_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., ptk: _Optional[str] = ..., rpc_endpoint: _Optional[str] = ..., version: _Optional[int] = ..., attempts: _Optional[int] = ..., dead: bool = ..., reason: _Optional[str] = ..., next_attempt_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDeliveriesRequest(_message.Message):
    __slots__ = ("dead_only", "page_size", "page_token")
    DEAD_ONLY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    dead_only: bool
    page_size: int
    page_token: str
    def __init__(self, dead_only: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDeliveriesResponse(_message.Message):
    __slots__ = ("deliveries", "next_page_token")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[Delivery]
    next_page_token: str
    def __init__(self, deliveries: _Optional[_Iterable[_Union[Delivery, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RetryDeliveryRequest(_message.Message):
    __slots__ = ("request_id", "id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    id: str
    def __init__(self, request_id: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class RetryDeliveryResponse(_message.Message):
    __slots__ = ("delivery",)
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    delivery: Delivery
    def __init__(self, delivery: _Optional[_Union[Delivery, _Mapping]] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("number", "time", "who", "what", "subject", "outcome", "times")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    number: int
    time: _timestamp_pb2.Timestamp
    who: str
    what: str
    subject: str
    outcome: str
    times: int
    def __init__(self, number: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., who: _Optional[str] = ..., what: _Optional[str] = ..., subject: _Optional[str] = ..., outcome: _Optional[str] = ..., times: _Optional[int] = ...) -> None: ...

class ListAuditEntriesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "find", "changes_only")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FIND_FIELD_NUMBER: _ClassVar[int]
    CHANGES_ONLY_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    find: str
    changes_only: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., find: _Optional[str] = ..., changes_only: bool = ...) -> None: ...

class ListAuditEntriesResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
