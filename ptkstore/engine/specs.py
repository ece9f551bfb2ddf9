"""The specifications of all streams, and the privacy filters of their policies. They never change
but for ``use``, so what was read once is kept; what another process made is read when it is asked
for, and `current` reads again what may have changed. Reason: STREAM_UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from ptklib.errors import Refused
from ptklib.privacy.filters import Filter
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.metadata import Metadata, StreamRow

__all__ = ["Specs"]


class Specs(MutableMapping[str, StreamSpec]):
    """By name. Thread-safe."""

    def __init__(self, metadata: Metadata) -> None:
        """Read nothing yet."""
        self._metadata = metadata
        # Each with what it was read from: reading the same again would take longer than all else of
        # a call.
        self._known: dict[str, tuple[StreamSpec, object]] = {}
        self._filters: dict[str, Filter] = {}

    def named(self, name: str) -> StreamSpec:
        """The specification of a stream that somebody asks for. Refused: STREAM_UNKNOWN."""
        if name not in self:
            raise Refused(
                "STREAM_UNKNOWN", f"there is no stream {name!r}: create it first", stream=name
            )
        return self[name]

    def current(self, name: str) -> StreamSpec:
        """The specification as it is stored at this moment: another process may have changed its
        ``use``. Refused: STREAM_UNKNOWN.
        """
        with self._metadata.read() as tx:
            return self._taken(tx.streams.get(name))

    def all(self) -> list[StreamSpec]:
        """All specifications as they are stored at this moment, by name."""
        with self._metadata.read() as tx:
            for row in tx.streams.list():
                self._taken(row)
        return [self._known[name][0] for name in sorted(self._known)]

    def __getitem__(self, name: str) -> StreamSpec:
        """The specification of a stream; KeyError where there is none."""
        if name not in self._known:
            self._read()
        return self._known[name][0]

    def __setitem__(self, name: str, spec: StreamSpec) -> None:
        """Keep the specification of a stream that was made here."""
        self._known[name] = spec, None

    def __delitem__(self, name: str) -> None:
        """Forget what was read; it is read again when it is asked for."""
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        """All names, by name."""
        self._read()
        return iter(sorted(self._known))

    def __len__(self) -> int:
        """How many streams there are."""
        self._read()
        return len(self._known)

    def privacy_filter(self, name: str) -> Filter:
        """The filter of a stream's policy; KeyError where there is none. Kept, for it remembers
        demands.
        """
        if name not in self._filters:
            self._filters[name] = self[name].policy.filter()
        return self._filters[name]

    def _read(self) -> None:
        with self._metadata.read() as tx:
            for row in tx.streams.list():
                if row.name not in self._known:
                    self._taken(row)

    def _taken(self, row: StreamRow) -> StreamSpec:
        spec, stored = self._known.get(row.name, (None, None))
        if spec is None or stored != row.spec:
            spec = StreamSpec.from_stored(row.spec)
            self._known[row.name] = spec, row.spec
        return spec
