"""The specifications of all streams. They never change, so what was read once is kept; what another process made is read when
it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from ptkstore.metadata import Metadata
from ptkstore.streams import StreamSpec

__all__ = ["Specs"]


class Specs(MutableMapping[str, StreamSpec]):
    """By name. Thread-safe."""

    def __init__(self, metadata: Metadata) -> None:
        """Read nothing yet."""
        self._metadata = metadata
        self._known: dict[str, StreamSpec] = {}

    def __getitem__(self, name: str) -> StreamSpec:
        """The specification of a stream; KeyError where there is none."""
        if name not in self._known:
            self._read()
        return self._known[name]

    def __setitem__(self, name: str, spec: StreamSpec) -> None:
        """Keep the specification of a stream that was made here."""
        self._known[name] = spec

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

    def _read(self) -> None:
        with self._metadata.read() as tx:
            for row in tx.streams.list():
                if row.name not in self._known:
                    self._known[row.name] = StreamSpec.from_json(row.spec)
