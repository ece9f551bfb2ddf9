"""A run that is killed is taken up again: the same steps, each released once, for one price."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.models.sgd.checkpoint import Checkpoint, CheckpointFile
from ptklib.models.sgd.clipped import ClippedSums
from ptklib.models.sgd.encoded import EncodedRecords
from ptklib.models.sgd.heads import Logistic
from ptklib.models.sgd.members import TaggedBatches
from ptklib.models.sgd.noise import StepNoise
from ptklib.models.sgd.optimiser import Optimiser
from ptklib.models.sgd.plan import SgdPace, SgdPlan, SgdStage, plan_of
from ptklib.models.sgd.run import Run
from ptklib.price_first import Budget
from ptklib.testing.noise import planted_noise
from tests.models.sgd.nets import net, records

NETWORK = net(6, Logistic())
# Whole epochs of four batches.
STAGES = (SgdStage(8, 1.0), SgdStage(4, 0.5))
BUDGET = Budget(Fraction(1), Fraction(1, 10**5), 1)


class Killed(Exception):
    """What happens in the middle of a run."""


class ConstantSource:
    """The same word for ever: noise of a step does not depend on how many were drawn before."""

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, 0x1234_5678_9ABC_DEF1, dtype=np.uint64)


def run_of(batching: str, **more: object) -> Run:
    rate = Fraction(1, 4) if batching != "all" else Fraction(1)
    name = "poisson" if batching == "all" else batching
    plan = plan_of(SgdPace(name, rate, STAGES), BUDGET)  # type: ignore[arg-type]
    optimiser = Optimiser(1.0, momentum=0.9, decay="linear", averaging=True)
    return Run(NETWORK, plan, optimiser, (1.0,), int(more.get("expected", 200)), 0)  # type: ignore[call-overload]


@pytest.fixture(name="data")
def _data() -> EncodedRecords:
    return records(NETWORK, 200, 1)


@pytest.mark.parametrize("every", [1, 3, 5])
@pytest.mark.parametrize("batching", ["all", "tags"])
def test_killed_at_every_step_a_run_ends_where_it_would_have(
    batching: str, every: int, data: EncodedRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its release, after it, and while a checkpoint is written."""
    run = run_of(batching)
    monkeypatch.setattr("ptklib.models.sgd.checkpoint.os.fsync", lambda _: None)
    with planted_noise():
        wanted = run.train(data, noise=ConstantSource())
        for name in ("begin", "move", "write"):
            for step in range(run.plan.steps):
                file = CheckpointFile(tmp_path / f"{batching}{name}{step}", every)
                with monkeypatch.context() as planted:
                    _plant(planted, name, step)
                    try:
                        made = run.train(data, noise=ConstantSource(), file=file)
                    except Killed:
                        kept = file.read()
                        assert kept is None or kept.step in (*range(0, 12, every), 12)
                        planted.undo()
                        made = run.train(data, noise=ConstantSource(), file=file)
                assert np.array_equal(made, wanted)


def _plant(planted: pytest.MonkeyPatch, name: str, step: int) -> None:
    seen: list[object] = []

    def count(*_: object) -> None:
        seen.append(0)
        if len(seen) == step + 1:
            raise Killed

    if name == "write":
        planted.setattr("ptklib.models.sgd.checkpoint.os.fsync", count)
        return
    owner: Any = ClippedSums if name == "begin" else Optimiser
    right = getattr(owner, name)

    def then_count(*given: Any) -> None:
        right(*given)
        count()

    planted.setattr(owner, name, then_count)


@pytest.mark.parametrize("batching", ["poisson", "tags"])
def test_every_step_is_released_once_however_often_a_run_is_killed(
    batching: str, data: EncodedRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that are kept are never made again, so what is seen costs what was priced."""
    run, file = run_of(batching), CheckpointFile(tmp_path / "kept", 1)
    done: list[int] = []
    multiplier = SgdPlan.multiplier

    def watched(plan: SgdPlan, step: int) -> tuple[float, int]:
        done.append(step)
        return multiplier(plan, step)

    monkeypatch.setattr(SgdPlan, "multiplier", watched)
    keep = CheckpointFile.keep

    def kept(self: CheckpointFile, checkpoint: Checkpoint) -> None:
        keep(self, checkpoint)
        if checkpoint.step % 2:
            raise Killed

    monkeypatch.setattr(CheckpointFile, "keep", kept)
    for _ in range(run.plan.steps // 2):
        with pytest.raises(Killed):
            run.train(data, file=file)
    run.train(data, file=file)
    assert done == list(range(run.plan.steps))


def test_a_run_that_is_over_releases_nothing_more(data: EncodedRecords, tmp_path: Path) -> None:
    run, file = run_of("poisson"), CheckpointFile(tmp_path / "kept", 4)
    first = run.train(data, file=file)
    assert np.array_equal(first, run.train(data, file=file))
    assert not np.array_equal(first, run.train(data))


def test_noise_after_a_kill_is_fresh(data: EncodedRecords, tmp_path: Path) -> None:
    """No noise is kept, so none can be used for other records: two runs from one checkpoint
    differ."""
    run, file = run_of("poisson"), CheckpointFile(tmp_path / "kept", 1)
    run.train(data, file=file)
    whole = file.read()
    assert whole is not None
    ends = []
    for place in ("a", "b"):
        other = CheckpointFile(tmp_path / place, 1)
        other.keep(Checkpoint(10, whole.place, whole.keys, whole.digest))
        ends.append(run.train(data, file=other))
    assert not np.array_equal(ends[0], ends[1])


def test_members_of_an_epoch_are_the_same_after_a_kill(
    data: EncodedRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed within an epoch, in another order: a record is in one batch of it, before and
    after."""
    run, file, seen = run_of("tags"), CheckpointFile(tmp_path / "kept", 1), []
    batch = TaggedBatches.batch

    def watched(self: TaggedBatches, place: int) -> NDArray[np.intp]:
        members = batch(self, place)
        seen.append(members)
        return members

    monkeypatch.setattr(TaggedBatches, "batch", watched)
    with monkeypatch.context() as planted:
        _plant(planted, "move", 6)
        with pytest.raises(Killed):
            run.train(data, file=file)
    before = [set(members.tolist()) for members in seen[4:6]]
    seen.clear()
    order = np.random.default_rng(1).permutation(len(data))
    moved = EncodedRecords([data.shelves[0][order]], [data.squares[order]], [data.labels[order]])
    run.train(moved, file=file)
    after = [set(order[members].tolist()) for members in seen[:2]]
    epoch = [*before, *after]
    assert sorted(place for members in epoch for place in members) == list(range(len(data)))


@pytest.mark.parametrize("other", [{"expected": 100}, {"batching": "tags"}])
def test_another_run_is_refused(
    other: dict[str, object], data: EncodedRecords, tmp_path: Path
) -> None:
    file = CheckpointFile(tmp_path / "kept", 1)
    run_of("poisson").train(data, file=file)
    given = {"batching": "poisson", **other}
    with pytest.raises(InvalidInput) as refused:
        run_of(**given).train(data, file=file)  # type: ignore[arg-type]
    assert refused.value.reason == "CHECKPOINT_MISMATCH"


def test_another_start_is_refused(data: EncodedRecords, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "kept", 1)
    run_of("poisson").train(data, file=file)
    start = np.ones(NETWORK.size, np.float32)
    with pytest.raises(InvalidInput, match="previous state"):
        run_of("poisson").train(data, file=file, start=start)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_a_damaged_checkpoint_is_refused(damage: str, data: EncodedRecords, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "kept", 1)
    run_of("poisson").train(data, file=file)
    body = file.path.read_bytes()
    damaged = {
        "empty": b"",
        "cut": body[:-9],
        "flipped": body.replace(b"velocity", b"velocitx"),
        "other": b"not a checkpoint",
    }
    file.path.write_bytes(damaged[damage])
    with pytest.raises(InvalidInput) as refused:
        run_of("poisson").train(data, file=file)
    assert refused.value.reason == "CHECKPOINT_UNREADABLE"


def test_a_checkpoint_is_for_its_owner_alone(data: EncodedRecords, tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "kept", 1)
    (tmp_path / "kept.new").write_bytes(b"torn")
    run_of("poisson").train(data, file=file)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


_CHILD = """
import sys
from pathlib import Path
from tests.models.sgd.nets import records
from tests.models.sgd.test_checkpoint import NETWORK, run_of
from ptklib.models.sgd.checkpoint import CheckpointFile
keep, path = CheckpointFile.keep, Path(sys.argv[1])
def slow(self, checkpoint):
    keep(self, checkpoint)
    print(checkpoint.step, flush=True)
    sys.stdin.readline()
CheckpointFile.keep = slow
run_of("tags").train(records(NETWORK, 200, 1), file=CheckpointFile(path, 1))
"""


def test_a_process_that_is_killed_is_taken_up_by_another(
    data: EncodedRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = CheckpointFile(tmp_path / "kept", 1)
    kept: Checkpoint | None = None
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(file.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            for _ in range(2):
                step = int(child.stdout.readline())
                child.stdin.write(b"\n")
                child.stdin.flush()
            os.kill(child.pid, signal.SIGKILL)
        kept = file.read()
        assert kept is not None
        assert kept.step >= step
    assert kept is not None
    drawn: list[object] = []
    draw = StepNoise.draw

    def watched(*given: Any) -> Any:
        drawn.append(0)
        return draw(*given)

    monkeypatch.setattr(StepNoise, "draw", watched)
    run_of("tags").train(data, file=file)
    assert len(drawn) == run_of("tags").plan.steps - kept.step
