"""A run that can be taken up again, without a second charge.

A checkpoint is all that later steps depend on: how many steps are done, the weights, what they move
by, their average, and the keys by which batches are dealt. Every noisy sum that was released so far
is in it, as what it did to the weights. The noise of later steps is not: it is drawn when they are
made.

**Proof note.** *Unit, cost:* those of the plan, once. A step is *done* when a checkpoint after it
is kept (`CheckpointFile.keep`: written to a new file, flushed, then renamed over the old one).
Nothing of a run leaves it before: `run` hands out checkpoints and nothing else. A process that dies
takes with it the steps after its last checkpoint, unseen by anybody; taken up again, these are made
anew with fresh noise, and of each step only one release is ever seen. So the run as seen makes each
of its steps once. Three things could break this:

* *Members.* With batches by tag a record must be in one batch of an epoch, before and after: the
  keys are in the checkpoint, so it is dealt to the same batch. Poisson batches of a step that was
  not done are drawn anew, independently of all that is seen.
* *Dying must not tell.* If records made a process die, living on would be an answer. Memory and
  failures do not depend on what records hold (`clipped`, `ptk`).
* *Another run.* A checkpoint is taken up by the same configuration at the same price (`digest`) or
  refused. Other records than before are as private as the first ones: each step is a mechanism of
  its own and no noise is used twice.

A checkpoint of a run that is not over is as private as what is published of it, its keys aside:
they tell which records were together in a batch. Keep the file as closed as the records.

Reasons: CHECKPOINT_UNREADABLE, CHECKPOINT_MISMATCH.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ptklib.errors import InvalidInput
from ptklib.models.sgd.members import KEY_BYTES
from ptklib.models.sgd.optimiser import Place

__all__ = ["Checkpoint", "CheckpointFile"]

_VECTORS = ("parameters", "velocity", "average")
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Checkpoint:
    """A run after some steps. ``keys`` are that of tags and that of the epoch, where there are
    any."""

    step: int
    place: Place
    keys: tuple[bytes, bytes]
    digest: bytes

    def as_bytes(self) -> bytes:
        """As a file of arrays."""
        arrays: dict[str, NDArray[Any]] = {
            name: np.ascontiguousarray(getattr(self.place, name)) for name in _VECTORS
        }
        arrays["step"] = np.array([self.step], dtype=np.int64)
        arrays["keys"] = np.frombuffer(b"".join(self.keys), dtype=np.uint8)
        arrays["digest"] = np.frombuffer(self.digest, dtype=np.uint8)
        return bytes(save(arrays))

    @classmethod
    def from_bytes(cls, body: bytes) -> Checkpoint:
        """Read the form of `as_bytes`."""
        try:
            arrays = load(body)
            size = len(arrays["parameters"])
            vectors = [arrays[name] for name in _VECTORS]
            keys, digest = arrays["keys"].tobytes(), arrays["digest"].tobytes()
            step = int(arrays["step"][0])
            right = (
                all(vector.dtype == np.float32 and vector.shape == (size,) for vector in vectors)
                and all(bool(np.isfinite(vector).all()) for vector in vectors)
                and len(digest) == _DIGEST_BYTES
                and len(keys) == 2 * KEY_BYTES
                and step >= 0
            )
        except (SafetensorError, KeyError, IndexError, TypeError, ValueError):
            right = False
        if not right:
            raise InvalidInput(
                "CHECKPOINT_UNREADABLE",
                "a checkpoint must be a file that a run has kept; start the run anew with a budget "
                "of its own",
            )
        place = Place(*(vector.copy() for vector in vectors))
        return cls(step, place, (keys[:KEY_BYTES], keys[KEY_BYTES:]), digest)

    def check(self, digest: bytes) -> None:
        """Refuse to go on with another configuration or another price."""
        if self.digest != digest:
            raise InvalidInput(
                "CHECKPOINT_MISMATCH",
                "a checkpoint must be taken up by the configuration, the budget and the previous "
                "state that it was made with; this one was made with others",
            )


@dataclass(frozen=True)
class CheckpointFile:
    """Where the checkpoint of a run is kept: after every so many steps, and at the end."""

    path: Path
    every_steps: int = 1

    def keep(self, checkpoint: Checkpoint) -> None:
        """Once this returns, the steps are done."""
        new = self.path.with_name(self.path.name + ".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(checkpoint.as_bytes())
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self) -> Checkpoint | None:
        """The last one kept, if any; what was being written when a process died is dropped."""
        self.path.with_name(self.path.name + ".new").unlink(missing_ok=True)
        try:
            body = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return Checkpoint.from_bytes(body)
