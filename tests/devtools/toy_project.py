"""A project small enough to be set up in a test: one dependency, a build backend of its own, and
the uv of this environment, all as wheels in a folder, so that nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

__all__ = ["ROOT", "ToyProject", "make_uv_wheel"]

ROOT = Path(__file__).parents[2]

_PYPROJECT = """
[build-system]
requires = ["marble"]
build-backend = "backend"
backend-path = ["."]
[project]
name = "toy"
version = "1"
dependencies = ["marble"]
[project.optional-dependencies]
dev = []
"""
_BACKEND = '''
"""Links the project to its sources, as build backends do."""
import os, zipfile
import marble
INFO = {"METADATA": "Metadata-Version: 2.1\\nName: toy\\nVersion: 1\\nRequires-Dist: marble\\n\\nProvides-Extra: dev\\n",
        "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n", "RECORD": ""}
def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "toy-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as file:
        file.writestr("toy.pth", os.getcwd() + "\\n")
        for key, text in INFO.items():
            file.writestr("toy-1.dist-info/" + key, text)
    return name
'''


@dataclass(frozen=True)
class ToyProject:
    """``root`` is the project, ``wheels`` the folder that pip is told to look into."""

    root: Path
    wheels: Path

    @classmethod
    def make(cls, folder: Path) -> ToyProject:
        """One whose lock names marble 1.0 and no uv that could be had."""
        project = cls(folder / "project", folder / "wheels")
        project.root.mkdir()
        project.wheels.mkdir()
        (project.root / "pyproject.toml").write_text(_PYPROJECT)
        (project.root / "backend.py").write_text(_BACKEND)
        (project.root / "toy.py").write_text("import marble\n")
        project.lock(project.add_marble("1.0"), ("uv", "0.0.1", "0" * 64))
        return project

    @property
    def venv(self) -> Path:
        """Where the environment is made."""
        return self.root / ".venv"

    def add_marble(self, version: str, *, remark: str = "") -> tuple[str, str, str]:
        """A wheel of the dependency; the remark changes its bytes and nothing else."""
        path = self.wheels / f"marble-{version}-py3-none-any.whl"
        info = f"marble-{version}.dist-info"
        # Two versions that are installed within one second must differ in length: Python would take
        # what it has compiled of the first for the second.
        longer = "#" * int(version.partition(".")[0])
        files = {
            "marble.py": f'VERSION = "{version}"  # {remark}{longer}\n',
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: marble\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        _write_wheel(path, info, {name: text.encode() for name, text in files.items()})
        return "marble", version, hashlib.sha256(path.read_bytes()).hexdigest()

    def add_uv(self, wheel: Path) -> tuple[str, str, str]:
        """Let the uv of this environment be had."""
        (self.wheels / wheel.name).symlink_to(wheel)
        return "uv", metadata.version("uv"), hashlib.sha256(wheel.read_bytes()).hexdigest()

    def lock(self, *named: tuple[str, str, str]) -> None:
        """Write the lock."""
        lines = (
            f"{name}=={version} \\\n    --hash=sha256:{digest}\n" for name, version, digest in named
        )
        (self.root / "requirements-dev.lock").write_text("# A first line.\n" + "".join(lines))

    def set_up(
        self, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """``python -m devtools.environment``, on a machine that has no index but a folder, known to
        pip alone.
        """
        bare = {"PATH": os.environ["PATH"], "HOME": str(self.root.parent), "PYTHONPATH": str(ROOT)}
        pip = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
        }
        return subprocess.run(
            [sys.executable, "-m", "devtools.environment", ".venv", *arguments],
            cwd=self.root,
            env={**bare, **pip, **(environ or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def marble(self) -> str:
        """The version that the project finds in its environment."""
        question = "import toy; print(toy.marble.VERSION)"
        run = subprocess.run(
            [self.venv / "bin" / "python", "-c", question],
            cwd=self.root.parent,
            env={},
            capture_output=True,
            text=True,
            check=False,
        )
        return run.stdout.strip() if run.returncode == 0 else run.stderr.splitlines()[-1]


def make_uv_wheel(folder: Path) -> Path:
    """The uv that is installed here, as a wheel again."""
    found = metadata.distribution("uv")
    assert found.files is not None
    info = f"uv-{found.version}.dist-info"
    files = {}
    for file in found.files:
        scripts = file.parts[-2:-1] == ("bin",)
        if scripts or (
            ".." not in file.parts and "__pycache__" not in file.parts and file.name != "RECORD"
        ):
            name = f"uv-{found.version}.data/scripts/{file.name}" if scripts else str(file)
            files[name] = Path(str(file.locate())).read_bytes()
    tag = next(
        line.split()[1]
        for line in files[f"{info}/WHEEL"].decode().splitlines()
        if line.startswith("Tag:")
    )
    path = folder / f"uv-{found.version}-{tag}.whl"
    _write_wheel(path, info, files)
    return path


def _write_wheel(path: Path, info: str, files: Mapping[str, bytes]) -> None:
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in {**files, f"{info}/RECORD": record}.items():
            entry = zipfile.ZipInfo(
                name
            )  # without the time of writing: the same files are the same bytes
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, body)
