"""What the parts of the project are and what they may import. No rule names a module inside a
package.

`LAYERS`, lowest first: a module imports from its own part and from parts below, never from above or
beside. A part is a package with everything below it, or a few modules that lie directly in
``ptklib`` or ``ptkstore`` and belong together. `ONLY` narrows what a part may import further.
`PURE` parts touch no clock, file, network or randomness. Only `TRANSACTORS` open transactions of
the metadata. `MOST_MODULES` is how many modules fit into one package. Beyond these, packages never
import each other in a circle, and a name that another module imports is in the ``__all__`` of its
own.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "IMPURE",
    "LAYERS",
    "MOST_MODULES",
    "ONLY",
    "PRODUCT",
    "PURE",
    "ROOTS",
    "TRANSACTORS",
    "Part",
]


@dataclass(frozen=True)
class Part:
    """Packages and modules that are one part of the project, by a name that people use."""

    name: str
    members: tuple[str, ...]

    def holds(self, module: str) -> bool:
        """Whether a module belongs to this part."""
        return any(module == member or module.startswith(member + ".") for member in self.members)


def _part(*members: str, name: str = "") -> Part:
    return Part(name or members[0], members)


LAYERS: tuple[tuple[Part, ...], ...] = (
    (_part("ptklib.errors"),),
    (_part("ptklib.encoding"),),
    (_part("ptklib.privacy"),),
    (_part("ptklib.ledger"),),
    (
        _part(
            "ptklib.columns",
            "ptklib.config",
            "ptklib.features",
            "ptklib.frames",
            "ptklib.price_first",
            "ptklib.ptk",
            "ptklib.registry",
            "ptklib.serving",
            "ptklib.state",
            name="ptklib: the contract",
        ),
    ),
    (_part("ptklib.ptks"), _part("ptklib.models"), _part("ptklib.validators")),
    (
        _part("ptklib.export"),
        _part("ptklib.pipelines"),
        _part("ptklib.preprocessing"),
        _part("ptklib.sklearn"),
    ),
    (_part("ptklib.testing"),),
    (_part("ptklib.auditing"),),
    (_part("profiler"), _part("allocator")),
    # Allowances, back-off, what is closed at the end of a block, files with closed modes, the names
    # of extras, and the messages that are generated from proto/.
    (
        _part(
            "ptkstore.allowance",
            "ptkstore.backoff",
            "ptkstore.closing",
            "ptkstore.extras",
            "ptkstore.private_files",
            "ptkstore.v1",
            name="ptkstore: ground",
        ),
    ),
    (_part("ptkstore.api"),),
    (_part("ptkstore.drawing"), _part("ptkstore.ledger"), _part("ptkstore.lake")),
    (_part("ptkstore.streams"), _part("ptkstore.metadata")),
    (_part("ptkstore.bus"), _part("ptkstore.workers"), _part("ptkstore.tracing")),
    (_part("ptkstore.engine"),),
    (_part("ptkstore.wire"), _part("ptkstore.local")),
    (_part("ptkstore.client"),),
    (_part("ptkstore.opening"),),
    (_part("ptkstore.rpc"),),
    # The composition root of the service, and the projects that are copied and never imported.
    (_part("ptkstore.server", "ptkstore.settings", "ptkstore.templates", name="ptkstore.server"),),
    (_part("ptkstore.console"),),
    (_part("ptkstore.cli"),),
    (_part("examples"),),
    (_part("devtools"),),
    # Tests show in small what benchmarks show in large, and share their pieces.
    (_part("tests", "benchmarks"),),
)

# What of the project a part may import besides itself.
_LIBRARY = (
    "ptklib.errors",
    "ptklib.encoding",
    "ptklib.privacy",
    "ptklib.ledger",
    "ptklib: the contract",
)
_PEOPLE = (
    "ptklib.errors",
    "ptklib.encoding",
    "ptkstore: ground",
    "ptkstore.api",
    "ptkstore.drawing",
)
ONLY: dict[str, tuple[str, ...]] = {
    "ptkstore.api": _LIBRARY,
    "ptkstore.wire": ("ptklib.errors", "ptklib.encoding", "ptkstore: ground", "ptkstore.api"),
    # Whoever has a server needs no engine, no database and no solver.
    "ptkstore.client": (*_LIBRARY, "ptkstore: ground", "ptkstore.api", "ptkstore.wire"),
    # Stores come in by the front door, whichever they are.
    "ptkstore.console": _PEOPLE,
    # An operator's commands keep the store safe and run the server; a researcher's plan and profile
    # without a store.
    "ptkstore.cli": (
        *_PEOPLE,
        *_LIBRARY,
        "ptklib.auditing",
        "allocator",
        "profiler",
        "ptkstore.engine",
        "ptkstore.client",
        "ptkstore.server",
        "ptkstore.console",
    ),
}

PURE = ("profiler", "allocator", "ptklib.ledger", "ptkstore.drawing")
IMPURE = {
    "asyncio",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "threading",
    "time",
}

# Every verb of a store is one function of the engine, which opens the transactions it needs; those
# who serve a store or are one call it.
TRANSACTORS = ("ptkstore.metadata", "ptkstore.engine")

MOST_MODULES = 15
PRODUCT = ("ptklib", "profiler", "allocator", "ptkstore", "devtools")
# Front doors: they say what is inside and import it when it is first used.
ROOTS = ("ptklib", "ptkstore")
