import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetBudgetRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class GetBudgetResponse(_message.Message):
    __slots__ = ("budget",)
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    budget: Budget
    def __init__(self, budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("stream", "unit", "epsilon", "delta", "composition", "exposure", "blocks_alive", "blocks_retired", "least_left", "most_left")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    COMPOSITION_FIELD_NUMBER: _ClassVar[int]
    EXPOSURE_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_ALIVE_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_RETIRED_FIELD_NUMBER: _ClassVar[int]
    LEAST_LEFT_FIELD_NUMBER: _ClassVar[int]
    MOST_LEFT_FIELD_NUMBER: _ClassVar[int]
    stream: str
    unit: str
    epsilon: str
    delta: str
    composition: str
    exposure: Exposure
    blocks_alive: int
    blocks_retired: int
    least_left: float
    most_left: float
    def __init__(self, stream: _Optional[str] = ..., unit: _Optional[str] = ..., epsilon: _Optional[str] = ..., delta: _Optional[str] = ..., composition: _Optional[str] = ..., exposure: _Optional[_Union[Exposure, _Mapping]] = ..., blocks_alive: _Optional[int] = ..., blocks_retired: _Optional[int] = ..., least_left: _Optional[float] = ..., most_left: _Optional[float] = ...) -> None: ...

class Exposure(_message.Message):
    __slots__ = ("oldest", "newest", "blocks", "dp_records")
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DP_RECORDS_FIELD_NUMBER: _ClassVar[int]
    oldest: _timestamp_pb2.Timestamp
    newest: _timestamp_pb2.Timestamp
    blocks: int
    dp_records: int
    def __init__(self, oldest: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., newest: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., blocks: _Optional[int] = ..., dp_records: _Optional[int] = ...) -> None: ...

class Block(_message.Message):
    __slots__ = ("name", "window", "status", "dp_records", "left", "retired")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DP_RECORDS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    name: str
    window: int
    status: str
    dp_records: int
    left: float
    retired: str
    def __init__(self, name: _Optional[str] = ..., window: _Optional[int] = ..., status: _Optional[str] = ..., dp_records: _Optional[int] = ..., left: _Optional[float] = ..., retired: _Optional[str] = ...) -> None: ...

class ListBlocksRequest(_message.Message):
    __slots__ = ("stream", "page_size", "page_token")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    stream: str
    page_size: int
    page_token: str
    def __init__(self, stream: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListBlocksResponse(_message.Message):
    __slots__ = ("blocks", "next_page_token")
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    blocks: _containers.RepeatedCompositeFieldContainer[Block]
    next_page_token: str
    def __init__(self, blocks: _Optional[_Iterable[_Union[Block, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetBlockRequest(_message.Message):
    __slots__ = ("stream", "name")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class GetBlockResponse(_message.Message):
    __slots__ = ("block", "losses")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    block: Block
    losses: _containers.RepeatedCompositeFieldContainer[TagLoss]
    def __init__(self, block: _Optional[_Union[Block, _Mapping]] = ..., losses: _Optional[_Iterable[_Union[TagLoss, _Mapping]]] = ...) -> None: ...

class TagLoss(_message.Message):
    __slots__ = ("start", "stop", "loss")
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    start: str
    stop: str
    loss: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, start: _Optional[str] = ..., stop: _Optional[str] = ..., loss: _Optional[_Iterable[int]] = ...) -> None: ...

class ListChargesRequest(_message.Message):
    __slots__ = ("stream", "page_size", "page_token", "newest_first", "find", "blocks")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    FIND_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    page_size: int
    page_token: str
    newest_first: bool
    find: str
    blocks: str
    def __init__(self, stream: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., newest_first: bool = ..., find: _Optional[str] = ..., blocks: _Optional[str] = ...) -> None: ...

class ListChargesResponse(_message.Message):
    __slots__ = ("charges", "next_page_token")
    CHARGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    charges: _containers.RepeatedCompositeFieldContainer[Charge]
    next_page_token: str
    def __init__(self, charges: _Optional[_Iterable[_Union[Charge, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Charge(_message.Message):
    __slots__ = ("number", "kind", "key", "entry_json")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ENTRY_JSON_FIELD_NUMBER: _ClassVar[int]
    number: int
    kind: str
    key: str
    entry_json: str
    def __init__(self, number: _Optional[int] = ..., kind: _Optional[str] = ..., key: _Optional[str] = ..., entry_json: _Optional[str] = ...) -> None: ...

class GetLedgerMapRequest(_message.Message):
    __slots__ = ("stream", "begin", "count")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    stream: str
    begin: int
    count: int
    def __init__(self, stream: _Optional[str] = ..., begin: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class GetLedgerMapResponse(_message.Message):
    __slots__ = ("stream", "begin", "count", "blocks", "columns", "spenders", "entries", "oldest_entry", "purposes", "holders")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SPENDERS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    OLDEST_ENTRY_FIELD_NUMBER: _ClassVar[int]
    PURPOSES_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    begin: int
    count: int
    blocks: int
    columns: _containers.RepeatedCompositeFieldContainer[LedgerColumn]
    spenders: _containers.RepeatedCompositeFieldContainer[Spender]
    entries: int
    oldest_entry: int
    purposes: _containers.RepeatedCompositeFieldContainer[Spender]
    holders: int
    def __init__(self, stream: _Optional[str] = ..., begin: _Optional[int] = ..., count: _Optional[int] = ..., blocks: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[LedgerColumn, _Mapping]]] = ..., spenders: _Optional[_Iterable[_Union[Spender, _Mapping]]] = ..., entries: _Optional[int] = ..., oldest_entry: _Optional[int] = ..., purposes: _Optional[_Iterable[_Union[Spender, _Mapping]]] = ..., holders: _Optional[int] = ...) -> None: ...

class LedgerColumn(_message.Message):
    __slots__ = ("first", "last", "window", "blocks", "retired", "shares", "mean", "flat")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    FLAT_FIELD_NUMBER: _ClassVar[int]
    first: str
    last: str
    window: int
    blocks: int
    retired: int
    shares: _containers.RepeatedScalarFieldContainer[float]
    mean: float
    flat: bool
    def __init__(self, first: _Optional[str] = ..., last: _Optional[str] = ..., window: _Optional[int] = ..., blocks: _Optional[int] = ..., retired: _Optional[int] = ..., shares: _Optional[_Iterable[float]] = ..., mean: _Optional[float] = ..., flat: bool = ...) -> None: ...

class Spender(_message.Message):
    __slots__ = ("who", "purpose", "charges", "most", "part")
    WHO_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    CHARGES_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    who: str
    purpose: str
    charges: int
    most: float
    part: float
    def __init__(self, who: _Optional[str] = ..., purpose: _Optional[str] = ..., charges: _Optional[int] = ..., most: _Optional[float] = ..., part: _Optional[float] = ...) -> None: ...
