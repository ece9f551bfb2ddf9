"""Copies of a process that has imported what they need: each by itself, and gone with their maker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import pytest

from ptklib.privacy.noise.source import SystemSource
from ptkstore.workers import copies

HERE = __name__
WARM = f"{HERE}:warm"
_DRAWN: list[int] = []


def warm() -> None:
    """What a template has drawn, its copies must not draw again."""
    _DRAWN.extend(SystemSource().words(4).tolist())


def tells(descriptor: int, *arguments: str) -> None:
    """Who it is, what it was told and what it draws; then it waits for the end of the pipe."""
    pipe: Connection[Any, Any] = Connection(descriptor)
    noise = SystemSource().words(4).tolist()
    pipe.send((os.getpid(), os.getsid(0), os.getppid(), arguments, _DRAWN, noise))
    with contextlib.suppress(EOFError):
        pipe.recv()


def dies(descriptor: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def started(run: Callable[..., None], *arguments: str) -> tuple[Any, copies.ChildProcess]:
    pipe, other = Pipe()
    with other:
        child = copies.start(f"{HERE}:{run.__name__}", other.fileno(), *arguments, warm=WARM)
    return pipe, child


def ended(pid: int) -> bool:
    """Gone, or a zombie that its parent has not looked at."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_each_copy_has_a_session_and_noise_of_its_own() -> None:
    pipes, children = zip(*(started(tells, "a", "b c") for _ in range(3)), strict=True)
    told = [pipe.recv() for pipe in pipes]
    assert [pid for pid, *_ in told] == [child.pid for child in children]
    assert all(pid == session for pid, session, *_ in told)
    assert {arguments for *_, arguments, _, _ in told} == {("a", "b c")}
    drawn = [tuple(noise) for *_, noise in told] + [tuple(told[0][4])]
    assert len(drawn[-1]) == 4, "the template has drawn, too"
    assert len(set(drawn)) == 4
    assert len({parent for _, _, parent, *_ in told}) == 1
    for pipe, child in zip(pipes, children, strict=True):
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0)
        pipe.close()
        child.wait(30)


def test_a_copy_is_killed_and_waited_for_and_its_number_is_nobody_elses() -> None:
    pipe, child = started(tells)
    pipe.recv()
    child.kill()
    child.wait(30)
    with pytest.raises(EOFError):
        pipe.recv()
    child.kill()
    child.wait(0)
    pipe, child = started(dies)
    child.wait(30)
    with pytest.raises(EOFError):
        pipe.recv()


def test_where_the_template_has_died_another_is_made() -> None:
    pipe, _ = started(tells)
    template = pipe.recv()[2]
    os.kill(template, signal.SIGKILL)
    eventually(lambda: ended(template))
    pipe.send("enough")
    pipe, _ = started(tells)
    assert pipe.recv()[2] != template
    pipe.close()


def test_other_places_to_import_from_make_another_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "newcomer.py").write_text(
        "import os\ndef run(descriptor):\n    os.write(descriptor, b'here')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    reading, writing = os.pipe()
    copies.start("newcomer:run", writing, warm=WARM).wait(30)
    os.close(writing)
    assert os.read(reading, 10) == b"here"
    os.close(reading)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_was_forked_from_ours_makes_its_own() -> None:
    pipe, _ = started(tells)
    template = pipe.recv()[2]
    pipe.close()

    def child(answer: Connection[Any, Any]) -> None:
        inner, _ = started(tells)
        answer.send(inner.recv()[2])
        os._exit(0)

    ours, theirs = Pipe()
    process = get_context("fork").Process(target=child, args=(theirs,))
    process.start()
    theirs.close()
    assert ours.recv() != template
    process.join(30)
    pipe, _ = started(tells)
    assert pipe.recv()[2] == template, "ours goes on"
    pipe.close()


PROGRAM = """
import sys
from multiprocessing.connection import Pipe
from ptkstore.workers import copies
print("once")
pipe, other = Pipe()
child = copies.start("tests.workers.test_copies:tells", other.fileno(), warm="tests.workers.test_copies:warm")
other.close()
told = pipe.recv()
print(told[0], told[2], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_they_end_with_their_maker_whose_program_they_do_not_run(
    tmp_path: Path, *, killed: bool
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "once\n"
        copy, template = map(int, program.stdout.readline().split())
        assert not ended(copy)
        assert not ended(template)
        if killed:
            program.kill()
        program.stdin.close()
        assert program.stdout.read() == "", "the program ran once"
    eventually(lambda: ended(copy) and ended(template))


def test_where_processes_have_no_names_each_is_a_new_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    pipe, child = started(tells, "alone")
    pid, session, parent, arguments, drawn, _ = pipe.recv()
    assert (pid, session, parent, arguments, drawn) == (child.pid, pid, os.getpid(), ("alone",), [])
    pipe.close()
    child.wait(30)
