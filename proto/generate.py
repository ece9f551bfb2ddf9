"""Generate the Python code of the wire contract: ``python proto/generate.py [FOLDER]``, into the
project by default.

The same contract and the same grpcio-tools give the same bytes; a test holds the checked-in code to
that.
"""

from __future__ import annotations

import sys
from pathlib import Path

CONTRACT = Path(__file__).parent


def generate(folder: Path) -> None:
    """Write ``ptkstore/v1/*`` below a folder."""
    import grpc_tools
    from grpc_tools import protoc

    known = Path(grpc_tools.__file__).parent / "_proto"
    files = sorted(str(one) for one in CONTRACT.glob("ptkstore/v1/*.proto"))
    outputs = [f"--{kind}_out={folder}" for kind in ("python", "pyi", "grpc_python")]
    code = protoc.main(["protoc", f"-I{CONTRACT}", f"-I{known}", *outputs, *files])
    if code:
        sys.exit(code)
    (folder / "ptkstore/v1/__init__.py").write_text(
        '"""The wire contract in Python, generated from ``proto/`` by ``make proto``. Never edited."""\n\n'
        "__all__: list[str] = []\n"
    )


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else CONTRACT.parent)
