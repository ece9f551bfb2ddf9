import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from ptkstore.v1 import plan_pb2 as _plan_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PtkStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PTK_STATUS_UNSPECIFIED: _ClassVar[PtkStatus]
    PTK_STATUS_WAITING: _ClassVar[PtkStatus]
    PTK_STATUS_ACTIVE: _ClassVar[PtkStatus]
    PTK_STATUS_REJECTED: _ClassVar[PtkStatus]
    PTK_STATUS_RETIRED: _ClassVar[PtkStatus]
    PTK_STATUS_FAILED: _ClassVar[PtkStatus]
PTK_STATUS_UNSPECIFIED: PtkStatus
PTK_STATUS_WAITING: PtkStatus
PTK_STATUS_ACTIVE: PtkStatus
PTK_STATUS_REJECTED: PtkStatus
PTK_STATUS_RETIRED: PtkStatus
PTK_STATUS_FAILED: PtkStatus

class Ptk(_message.Message):
    __slots__ = ("name", "stream", "kind", "config_json", "config_version", "target", "train_every", "status", "reason", "latest_version", "etag", "nearest_target", "changes", "refining", "remedies", "over", "epsilon")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    CONFIG_VERSION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TRAIN_EVERY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LATEST_VERSION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    NEAREST_TARGET_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REFINING_FIELD_NUMBER: _ClassVar[int]
    REMEDIES_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    name: str
    stream: str
    kind: str
    config_json: str
    config_version: int
    target: float
    train_every: int
    status: PtkStatus
    reason: str
    latest_version: int
    etag: str
    nearest_target: float
    changes: _containers.RepeatedScalarFieldContainer[str]
    refining: bool
    remedies: _containers.RepeatedCompositeFieldContainer[_plan_pb2.Remedy]
    over: str
    epsilon: str
    def __init__(self, name: _Optional[str] = ..., stream: _Optional[str] = ..., kind: _Optional[str] = ..., config_json: _Optional[str] = ..., config_version: _Optional[int] = ..., target: _Optional[float] = ..., train_every: _Optional[int] = ..., status: _Optional[_Union[PtkStatus, str]] = ..., reason: _Optional[str] = ..., latest_version: _Optional[int] = ..., etag: _Optional[str] = ..., nearest_target: _Optional[float] = ..., changes: _Optional[_Iterable[str]] = ..., refining: bool = ..., remedies: _Optional[_Iterable[_Union[_plan_pb2.Remedy, _Mapping]]] = ..., over: _Optional[str] = ..., epsilon: _Optional[str] = ...) -> None: ...

class Registration(_message.Message):
    __slots__ = ("name", "status", "reason", "nearest_target", "changes", "planned_epsilon", "planned_samples", "refining", "remedies")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEAREST_TARGET_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    PLANNED_EPSILON_FIELD_NUMBER: _ClassVar[int]
    PLANNED_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    REFINING_FIELD_NUMBER: _ClassVar[int]
    REMEDIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    status: PtkStatus
    reason: str
    nearest_target: float
    changes: _containers.RepeatedScalarFieldContainer[str]
    planned_epsilon: str
    planned_samples: int
    refining: bool
    remedies: _containers.RepeatedCompositeFieldContainer[_plan_pb2.Remedy]
    def __init__(self, name: _Optional[str] = ..., status: _Optional[_Union[PtkStatus, str]] = ..., reason: _Optional[str] = ..., nearest_target: _Optional[float] = ..., changes: _Optional[_Iterable[str]] = ..., planned_epsilon: _Optional[str] = ..., planned_samples: _Optional[int] = ..., refining: bool = ..., remedies: _Optional[_Iterable[_Union[_plan_pb2.Remedy, _Mapping]]] = ...) -> None: ...

class ApplyChangesRequest(_message.Message):
    __slots__ = ("request_id", "changes_json")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CHANGES_JSON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    changes_json: str
    def __init__(self, request_id: _Optional[str] = ..., changes_json: _Optional[str] = ...) -> None: ...

class ApplyChangesResponse(_message.Message):
    __slots__ = ("streams", "registrations", "retired")
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    REGISTRATIONS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    streams: _containers.RepeatedScalarFieldContainer[str]
    registrations: _containers.RepeatedCompositeFieldContainer[Registration]
    retired: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, streams: _Optional[_Iterable[str]] = ..., registrations: _Optional[_Iterable[_Union[Registration, _Mapping]]] = ..., retired: _Optional[_Iterable[str]] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ("name", "version", "digest", "window", "epsilon", "delta", "samples", "create_time", "validation", "validation_reason", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    digest: str
    window: int
    epsilon: str
    delta: str
    samples: int
    create_time: _timestamp_pb2.Timestamp
    validation: str
    validation_reason: str
    error: StateError
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., digest: _Optional[str] = ..., window: _Optional[int] = ..., epsilon: _Optional[str] = ..., delta: _Optional[str] = ..., samples: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., validation: _Optional[str] = ..., validation_reason: _Optional[str] = ..., error: _Optional[_Union[StateError, _Mapping]] = ...) -> None: ...

class StateError(_message.Message):
    __slots__ = ("source", "at_most", "confidence", "at_least", "estimate", "constant")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_FIELD_NUMBER: _ClassVar[int]
    source: str
    at_most: float
    confidence: str
    at_least: float
    estimate: float
    constant: float
    def __init__(self, source: _Optional[str] = ..., at_most: _Optional[float] = ..., confidence: _Optional[str] = ..., at_least: _Optional[float] = ..., estimate: _Optional[float] = ..., constant: _Optional[float] = ...) -> None: ...

class RegisterPtkRequest(_message.Message):
    __slots__ = ("request_id", "name", "stream", "kind", "config_json", "target", "train_every", "over", "epsilon")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TRAIN_EVERY_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    stream: str
    kind: str
    config_json: str
    target: float
    train_every: int
    over: str
    epsilon: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., stream: _Optional[str] = ..., kind: _Optional[str] = ..., config_json: _Optional[str] = ..., target: _Optional[float] = ..., train_every: _Optional[int] = ..., over: _Optional[str] = ..., epsilon: _Optional[str] = ...) -> None: ...

class RegisterPtkResponse(_message.Message):
    __slots__ = ("registration", "ptk")
    REGISTRATION_FIELD_NUMBER: _ClassVar[int]
    PTK_FIELD_NUMBER: _ClassVar[int]
    registration: Registration
    ptk: Ptk
    def __init__(self, registration: _Optional[_Union[Registration, _Mapping]] = ..., ptk: _Optional[_Union[Ptk, _Mapping]] = ...) -> None: ...

class DeregisterPtkRequest(_message.Message):
    __slots__ = ("request_id", "name")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeregisterPtkResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdatePtkConfigRequest(_message.Message):
    __slots__ = ("request_id", "name", "config_json", "etag")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    config_json: str
    etag: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., config_json: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class UpdatePtkConfigResponse(_message.Message):
    __slots__ = ("registration", "ptk")
    REGISTRATION_FIELD_NUMBER: _ClassVar[int]
    PTK_FIELD_NUMBER: _ClassVar[int]
    registration: Registration
    ptk: Ptk
    def __init__(self, registration: _Optional[_Union[Registration, _Mapping]] = ..., ptk: _Optional[_Union[Ptk, _Mapping]] = ...) -> None: ...

class UpdatePtkPerformanceTargetRequest(_message.Message):
    __slots__ = ("request_id", "name", "target", "etag", "epsilon")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    target: float
    etag: str
    epsilon: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., target: _Optional[float] = ..., etag: _Optional[str] = ..., epsilon: _Optional[str] = ...) -> None: ...

class UpdatePtkPerformanceTargetResponse(_message.Message):
    __slots__ = ("registration", "ptk")
    REGISTRATION_FIELD_NUMBER: _ClassVar[int]
    PTK_FIELD_NUMBER: _ClassVar[int]
    registration: Registration
    ptk: Ptk
    def __init__(self, registration: _Optional[_Union[Registration, _Mapping]] = ..., ptk: _Optional[_Union[Ptk, _Mapping]] = ...) -> None: ...

class GetPtkRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetPtkResponse(_message.Message):
    __slots__ = ("ptk",)
    PTK_FIELD_NUMBER: _ClassVar[int]
    ptk: Ptk
    def __init__(self, ptk: _Optional[_Union[Ptk, _Mapping]] = ...) -> None: ...

class ListPtksRequest(_message.Message):
    __slots__ = ("stream", "status", "page_size", "page_token")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    stream: str
    status: PtkStatus
    page_size: int
    page_token: str
    def __init__(self, stream: _Optional[str] = ..., status: _Optional[_Union[PtkStatus, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPtksResponse(_message.Message):
    __slots__ = ("ptks", "next_page_token")
    PTKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ptks: _containers.RepeatedCompositeFieldContainer[Ptk]
    next_page_token: str
    def __init__(self, ptks: _Optional[_Iterable[_Union[Ptk, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CountPtksRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class CountPtksResponse(_message.Message):
    __slots__ = ("counts",)
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedCompositeFieldContainer[PtkCount]
    def __init__(self, counts: _Optional[_Iterable[_Union[PtkCount, _Mapping]]] = ...) -> None: ...

class PtkCount(_message.Message):
    __slots__ = ("status", "count")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    status: PtkStatus
    count: int
    def __init__(self, status: _Optional[_Union[PtkStatus, str]] = ..., count: _Optional[int] = ...) -> None: ...

class SearchPtksRequest(_message.Message):
    __slots__ = ("stream", "status", "find", "sort", "page", "page_size")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    FIND_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    status: PtkStatus
    find: str
    sort: str
    page: int
    page_size: int
    def __init__(self, stream: _Optional[str] = ..., status: _Optional[_Union[PtkStatus, str]] = ..., find: _Optional[str] = ..., sort: _Optional[str] = ..., page: _Optional[int] = ..., page_size: _Optional[int] = ...) -> None: ...

class SearchPtksResponse(_message.Message):
    __slots__ = ("ptks", "found", "total", "page")
    PTKS_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    ptks: _containers.RepeatedCompositeFieldContainer[Ptk]
    found: int
    total: int
    page: int
    def __init__(self, ptks: _Optional[_Iterable[_Union[Ptk, _Mapping]]] = ..., found: _Optional[int] = ..., total: _Optional[int] = ..., page: _Optional[int] = ...) -> None: ...

class ListPtkConfigsRequest(_message.Message):
    __slots__ = ("name", "page_size")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    name: str
    page_size: int
    def __init__(self, name: _Optional[str] = ..., page_size: _Optional[int] = ...) -> None: ...

class ListPtkConfigsResponse(_message.Message):
    __slots__ = ("configs",)
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    configs: _containers.RepeatedCompositeFieldContainer[PtkConfig]
    def __init__(self, configs: _Optional[_Iterable[_Union[PtkConfig, _Mapping]]] = ...) -> None: ...

class PtkConfig(_message.Message):
    __slots__ = ("config_version", "config_json")
    CONFIG_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    config_version: int
    config_json: str
    def __init__(self, config_version: _Optional[int] = ..., config_json: _Optional[str] = ...) -> None: ...

class ListPtkKindsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPtkKindsResponse(_message.Message):
    __slots__ = ("kinds",)
    KINDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[PtkKind]
    def __init__(self, kinds: _Optional[_Iterable[_Union[PtkKind, _Mapping]]] = ...) -> None: ...

class PtkKind(_message.Message):
    __slots__ = ("kind", "config_schema_json")
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIG_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    kind: str
    config_schema_json: str
    def __init__(self, kind: _Optional[str] = ..., config_schema_json: _Optional[str] = ...) -> None: ...

class GetPtkProfileRequest(_message.Message):
    __slots__ = ("name", "levels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    levels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., levels: _Optional[_Iterable[str]] = ...) -> None: ...

class GetPtkProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: Profile
    def __init__(self, profile: _Optional[_Union[Profile, _Mapping]] = ...) -> None: ...

class RenewPtkProfileRequest(_message.Message):
    __slots__ = ("request_id", "name")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class RenewPtkProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: Profile
    def __init__(self, profile: _Optional[_Union[Profile, _Mapping]] = ...) -> None: ...

class Profile(_message.Message):
    __slots__ = ("source", "points", "promised", "confidence", "reason", "needed_records", "status", "trainings", "measured_json", "made_time")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEEDED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TRAININGS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_JSON_FIELD_NUMBER: _ClassVar[int]
    MADE_TIME_FIELD_NUMBER: _ClassVar[int]
    source: str
    points: _containers.RepeatedCompositeFieldContainer[ProfilePoint]
    promised: str
    confidence: str
    reason: str
    needed_records: int
    status: PtkStatus
    trainings: int
    measured_json: str
    made_time: _timestamp_pb2.Timestamp
    def __init__(self, source: _Optional[str] = ..., points: _Optional[_Iterable[_Union[ProfilePoint, _Mapping]]] = ..., promised: _Optional[str] = ..., confidence: _Optional[str] = ..., reason: _Optional[str] = ..., needed_records: _Optional[int] = ..., status: _Optional[_Union[PtkStatus, str]] = ..., trainings: _Optional[int] = ..., measured_json: _Optional[str] = ..., made_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ProfilePoint(_message.Message):
    __slots__ = ("level", "samples")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    level: str
    samples: int
    def __init__(self, level: _Optional[str] = ..., samples: _Optional[int] = ...) -> None: ...

class ListStatesRequest(_message.Message):
    __slots__ = ("name", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListStatesResponse(_message.Message):
    __slots__ = ("states", "next_page_token")
    STATES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[State]
    next_page_token: str
    def __init__(self, states: _Optional[_Iterable[_Union[State, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetStateRequest(_message.Message):
    __slots__ = ("name", "version", "as_of", "presign")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    PRESIGN_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    as_of: _timestamp_pb2.Timestamp
    presign: bool
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., presign: bool = ...) -> None: ...

class GetStateResponse(_message.Message):
    __slots__ = ("state", "manifest", "arrays", "arrays_bytes", "presigned_url")
    STATE_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_BYTES_FIELD_NUMBER: _ClassVar[int]
    PRESIGNED_URL_FIELD_NUMBER: _ClassVar[int]
    state: State
    manifest: bytes
    arrays: bytes
    arrays_bytes: int
    presigned_url: str
    def __init__(self, state: _Optional[_Union[State, _Mapping]] = ..., manifest: _Optional[bytes] = ..., arrays: _Optional[bytes] = ..., arrays_bytes: _Optional[int] = ..., presigned_url: _Optional[str] = ...) -> None: ...

class ReadStateRequest(_message.Message):
    __slots__ = ("name", "digest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    digest: str
    def __init__(self, name: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class ReadStateResponse(_message.Message):
    __slots__ = ("piece",)
    PIECE_FIELD_NUMBER: _ClassVar[int]
    piece: bytes
    def __init__(self, piece: _Optional[bytes] = ...) -> None: ...

class WatchPtkRequest(_message.Message):
    __slots__ = ("name", "after_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AFTER_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    after_version: int
    def __init__(self, name: _Optional[str] = ..., after_version: _Optional[int] = ...) -> None: ...

class WatchPtkResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: State
    def __init__(self, state: _Optional[_Union[State, _Mapping]] = ...) -> None: ...

class SubscribeToPtkRequest(_message.Message):
    __slots__ = ("request_id", "ptk", "rpc_endpoint")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PTK_FIELD_NUMBER: _ClassVar[int]
    RPC_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    ptk: str
    rpc_endpoint: str
    def __init__(self, request_id: _Optional[str] = ..., ptk: _Optional[str] = ..., rpc_endpoint: _Optional[str] = ...) -> None: ...

class SubscribeToPtkResponse(_message.Message):
    __slots__ = ("subscription",)
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    subscription: Subscription
    def __init__(self, subscription: _Optional[_Union[Subscription, _Mapping]] = ...) -> None: ...

class Subscription(_message.Message):
    __slots__ = ("id", "ptk", "rpc_endpoint", "delivered_version")
    ID_FIELD_NUMBER: _ClassVar[int]
    PTK_FIELD_NUMBER: _ClassVar[int]
    RPC_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    ptk: str
    rpc_endpoint: str
    delivered_version: int
    def __init__(self, id: _Optional[str] = ..., ptk: _Optional[str] = ..., rpc_endpoint: _Optional[str] = ..., delivered_version: _Optional[int] = ...) -> None: ...

class UnsubscribeFromPtkRequest(_message.Message):
    __slots__ = ("request_id", "id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    id: str
    def __init__(self, request_id: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class UnsubscribeFromPtkResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSubscriptionsRequest(_message.Message):
    __slots__ = ("ptk", "page_size", "page_token")
    PTK_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ptk: str
    page_size: int
    page_token: str
    def __init__(self, ptk: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSubscriptionsResponse(_message.Message):
    __slots__ = ("subscriptions", "next_page_token")
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    subscriptions: _containers.RepeatedCompositeFieldContainer[Subscription]
    next_page_token: str
    def __init__(self, subscriptions: _Optional[_Iterable[_Union[Subscription, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class NotifyNewPtkStateRequest(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: State
    def __init__(self, state: _Optional[_Union[State, _Mapping]] = ...) -> None: ...

class NotifyNewPtkStateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
