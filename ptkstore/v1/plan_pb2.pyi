import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Plan(_message.Message):
    __slots__ = ("stream", "window", "status", "total_samples", "lower_bound", "gap", "available_samples", "solver", "solve_seconds", "assignments", "partitions", "explanation", "changes", "recommended_samples", "recommended_window_seconds", "create_time", "spent_before", "left_out", "remedies", "use", "surplus", "surplus_samples", "gap_reason")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SOLVER_FIELD_NUMBER: _ClassVar[int]
    SOLVE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDED_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDED_WINDOW_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SPENT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    REMEDIES_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    SURPLUS_FIELD_NUMBER: _ClassVar[int]
    SURPLUS_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    GAP_REASON_FIELD_NUMBER: _ClassVar[int]
    stream: str
    window: int
    status: str
    total_samples: int
    lower_bound: int
    gap: float
    available_samples: int
    solver: str
    solve_seconds: float
    assignments: _containers.RepeatedCompositeFieldContainer[PlanAssignment]
    partitions: _containers.RepeatedCompositeFieldContainer[PlanPartition]
    explanation: str
    changes: _containers.RepeatedScalarFieldContainer[str]
    recommended_samples: int
    recommended_window_seconds: int
    create_time: _timestamp_pb2.Timestamp
    spent_before: float
    left_out: _containers.RepeatedCompositeFieldContainer[PlanLeftOut]
    remedies: _containers.RepeatedCompositeFieldContainer[Remedy]
    use: str
    surplus: _containers.RepeatedCompositeFieldContainer[PlanSurplus]
    surplus_samples: int
    gap_reason: str
    def __init__(self, stream: _Optional[str] = ..., window: _Optional[int] = ..., status: _Optional[str] = ..., total_samples: _Optional[int] = ..., lower_bound: _Optional[int] = ..., gap: _Optional[float] = ..., available_samples: _Optional[int] = ..., solver: _Optional[str] = ..., solve_seconds: _Optional[float] = ..., assignments: _Optional[_Iterable[_Union[PlanAssignment, _Mapping]]] = ..., partitions: _Optional[_Iterable[_Union[PlanPartition, _Mapping]]] = ..., explanation: _Optional[str] = ..., changes: _Optional[_Iterable[str]] = ..., recommended_samples: _Optional[int] = ..., recommended_window_seconds: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., spent_before: _Optional[float] = ..., left_out: _Optional[_Iterable[_Union[PlanLeftOut, _Mapping]]] = ..., remedies: _Optional[_Iterable[_Union[Remedy, _Mapping]]] = ..., use: _Optional[str] = ..., surplus: _Optional[_Iterable[_Union[PlanSurplus, _Mapping]]] = ..., surplus_samples: _Optional[int] = ..., gap_reason: _Optional[str] = ...) -> None: ...

class PlanSurplus(_message.Message):
    __slots__ = ("ptk", "epsilon", "samples", "share", "expected_minimum", "expected")
    PTK_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_MINIMUM_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    ptk: str
    epsilon: str
    samples: int
    share: float
    expected_minimum: float
    expected: float
    def __init__(self, ptk: _Optional[str] = ..., epsilon: _Optional[str] = ..., samples: _Optional[int] = ..., share: _Optional[float] = ..., expected_minimum: _Optional[float] = ..., expected: _Optional[float] = ...) -> None: ...

class Remedy(_message.Message):
    __slots__ = ("kind", "ptk", "field", "count", "target", "amount", "text")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PTK_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    ptk: str
    field: str
    count: int
    target: float
    amount: str
    text: str
    def __init__(self, kind: _Optional[str] = ..., ptk: _Optional[str] = ..., field: _Optional[str] = ..., count: _Optional[int] = ..., target: _Optional[float] = ..., amount: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class PlanLeftOut(_message.Message):
    __slots__ = ("ptk", "reason", "text")
    PTK_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ptk: str
    reason: str
    text: str
    def __init__(self, ptk: _Optional[str] = ..., reason: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class PlanAssignment(_message.Message):
    __slots__ = ("ptk", "epsilon", "samples", "target", "partitions", "share", "used")
    PTK_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    ptk: str
    epsilon: str
    samples: int
    target: float
    partitions: _containers.RepeatedScalarFieldContainer[int]
    share: float
    used: float
    def __init__(self, ptk: _Optional[str] = ..., epsilon: _Optional[str] = ..., samples: _Optional[int] = ..., target: _Optional[float] = ..., partitions: _Optional[_Iterable[int]] = ..., share: _Optional[float] = ..., used: _Optional[float] = ...) -> None: ...

class PlanPartition(_message.Message):
    __slots__ = ("samples", "ptks", "used")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    PTKS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    samples: int
    ptks: int
    used: float
    def __init__(self, samples: _Optional[int] = ..., ptks: _Optional[int] = ..., used: _Optional[float] = ...) -> None: ...

class GetPlanRequest(_message.Message):
    __slots__ = ("stream", "window", "fresh", "with_picture")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    WITH_PICTURE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    window: int
    fresh: bool
    with_picture: bool
    def __init__(self, stream: _Optional[str] = ..., window: _Optional[int] = ..., fresh: bool = ..., with_picture: bool = ...) -> None: ...

class GetPlanResponse(_message.Message):
    __slots__ = ("plan", "picture_svg")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PICTURE_SVG_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    picture_svg: str
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ..., picture_svg: _Optional[str] = ...) -> None: ...

class ListPlansRequest(_message.Message):
    __slots__ = ("stream", "page_size", "page_token")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    stream: str
    page_size: int
    page_token: str
    def __init__(self, stream: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPlansResponse(_message.Message):
    __slots__ = ("plans", "next_page_token")
    PLANS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    plans: _containers.RepeatedCompositeFieldContainer[Plan]
    next_page_token: str
    def __init__(self, plans: _Optional[_Iterable[_Union[Plan, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PlanChange(_message.Message):
    __slots__ = ("add", "remove", "retarget")
    ADD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    RETARGET_FIELD_NUMBER: _ClassVar[int]
    add: AddPtk
    remove: str
    retarget: RetargetPtk
    def __init__(self, add: _Optional[_Union[AddPtk, _Mapping]] = ..., remove: _Optional[str] = ..., retarget: _Optional[_Union[RetargetPtk, _Mapping]] = ...) -> None: ...

class AddPtk(_message.Message):
    __slots__ = ("name", "kind", "config_json", "target", "over", "epsilon")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    config_json: str
    target: float
    over: str
    epsilon: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., config_json: _Optional[str] = ..., target: _Optional[float] = ..., over: _Optional[str] = ..., epsilon: _Optional[str] = ...) -> None: ...

class RetargetPtk(_message.Message):
    __slots__ = ("name", "target", "epsilon")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    name: str
    target: float
    epsilon: str
    def __init__(self, name: _Optional[str] = ..., target: _Optional[float] = ..., epsilon: _Optional[str] = ...) -> None: ...

class WhatIfRequest(_message.Message):
    __slots__ = ("stream", "changes", "epsilon", "delta", "composition", "n_max", "use")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    COMPOSITION_FIELD_NUMBER: _ClassVar[int]
    N_MAX_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    changes: _containers.RepeatedCompositeFieldContainer[PlanChange]
    epsilon: str
    delta: str
    composition: str
    n_max: int
    use: str
    def __init__(self, stream: _Optional[str] = ..., changes: _Optional[_Iterable[_Union[PlanChange, _Mapping]]] = ..., epsilon: _Optional[str] = ..., delta: _Optional[str] = ..., composition: _Optional[str] = ..., n_max: _Optional[int] = ..., use: _Optional[str] = ...) -> None: ...

class WhatIfResponse(_message.Message):
    __slots__ = ("current", "proposed", "token", "unprofiled")
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    UNPROFILED_FIELD_NUMBER: _ClassVar[int]
    current: Plan
    proposed: Plan
    token: str
    unprofiled: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, current: _Optional[_Union[Plan, _Mapping]] = ..., proposed: _Optional[_Union[Plan, _Mapping]] = ..., token: _Optional[str] = ..., unprofiled: _Optional[_Iterable[str]] = ...) -> None: ...

class ApprovePlanRequest(_message.Message):
    __slots__ = ("request_id", "stream", "token")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    stream: str
    token: str
    def __init__(self, request_id: _Optional[str] = ..., stream: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class ApprovePlanResponse(_message.Message):
    __slots__ = ("plan",)
    PLAN_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ...) -> None: ...
