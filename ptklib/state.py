"""One trained version of a PTK: arrays, and the manifest that certifies what they cost.

A state is two byte strings: safetensors (arrays, no code) and canonical JSON (the manifest, which
holds the sha256 of the first). Equal states are equal bytes. Reading checks that sum and hands the
arrays to the PTK's own `validate`; nothing is unpickled, ever. The digest that names a state is
that of `ptklib.encoding.state_digest`, wherever the state came from.

The manifest is the privacy certificate. It holds public and DP values only: ``samples`` are those
that were *planned*.

Reasons: STATE_DAMAGED (bytes that are not what the manifest says), STATE_INVALID (a manifest or
arrays that make no state), and those of `registry` and `ptk`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from ptklib import registry
from ptklib.encoding.canonical import canonical
from ptklib.encoding.notebook import html_of
from ptklib.encoding.state_digest import digest_of_manifest
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, show
from ptklib.privacy.costs import Cost, cost_from_json
from ptklib.ptk import UNITS, Arrays, Ptk

__all__ = ["FORMAT", "Manifest", "State", "code_version"]

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a state is and what it cost.

    Numbers that are compared exactly (epsilon, delta) are decimal texts.
    """

    name: str
    kind: str
    config: Mapping[str, Any]
    version: int
    stream: str
    unit: str
    records_per_unit: int
    epsilon: str
    delta: str
    composition: str
    cost: Cost
    windows: tuple[str, str] | None  # oldest and newest window that the arrays speak of
    samples: int | None  # as planned
    target: float | None
    code_version: str
    previous: str | None  # digest of the state this one continues
    arrays_sha256: str
    # The epsilon and the samples that the target needed, where it was trained with more.
    minimum: Mapping[str, Any] | None = None
    # What a validator found, on records that training did not touch: `ptkstore.engine.window`
    # writes it. None where nothing was tested; such manifests are written without it.
    validation: Mapping[str, Any] | None = None
    # Of best effort, the error that it tells: `ptkstore.api.views.ptks.StateError`. None of states that
    # promise a target.
    error: Mapping[str, Any] | None = None
    # Over which windows the state is, by the choice of its PTK; None where each state simply
    # continues the one before. With (window, digest) of the states of one window that it was put
    # together of, oldest first.
    over: str | None = None
    parts: tuple[tuple[str, str], ...] | None = None

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        body: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        body["config"] = dict(self.config)
        body["cost"] = self.cost.as_json()
        if self.minimum is None:
            # Nor is it in manifests from before there was one: they keep their digests.
            del body["minimum"]
        body["windows"] = list(self.windows) if self.windows else None
        # As before there were validators: the digests of such states stay what they were.
        if self.validation is None:
            del body["validation"]
        else:
            body["validation"] = dict(self.validation)
        for name in ("error", "over", "parts"):
            if body[name] is None:
                del body[name]
        if "error" in body:
            body["error"] = dict(body["error"])
        return canonical({"format": FORMAT, **body})

    @property
    def digest(self) -> str:
        """The digest of the state that this certifies; STATE_INVALID where it names no arrays."""
        try:
            return digest_of_manifest(self.arrays_sha256, self.to_bytes())
        except ValueError:
            raise InvalidInput(
                "STATE_INVALID", "arrays_sha256 of a manifest must be a sha256: fetch it again"
            ) from None

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read `to_bytes`; any other spelling of the same facts is refused, so a digest names one
        manifest.
        """
        try:
            body = json.loads(data)
            if body.pop("format") != FORMAT:
                raise InvalidInput(
                    "STATE_INVALID", f"the manifest must be of format {FORMAT}: update this library"
                )
            body["cost"] = cost_from_json(body["cost"])
            body["windows"] = tuple(body["windows"]) if body["windows"] else None
            if "parts" in body:
                body["parts"] = tuple((window, digest) for window, digest in body["parts"])
            made = cls(**body)
            same = made.to_bytes() == data
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, InvalidInput) and error.reason == "STATE_INVALID":
                raise
            raise InvalidInput(
                "STATE_DAMAGED", "the manifest is not one of ours: fetch the state again"
            ) from None
        if not same:
            raise InvalidInput(
                "STATE_DAMAGED", "the manifest is not in its canonical form: fetch the state again"
            )
        return made


@dataclass(frozen=True)
class State:
    """One immutable version of a PTK. `State.make` fills in what follows from the rest."""

    ptk: Ptk
    arrays: Arrays
    manifest: Manifest

    def __post_init__(self) -> None:
        """The PTK must know its arrays, and the manifest must speak of this PTK.

        Arrays are kept as read-only copies.
        """
        self.ptk.validate(self.arrays)
        if self.manifest.kind != self.ptk.kind or dict(self.manifest.config) != self.ptk.as_json():
            raise InvalidInput(
                "STATE_INVALID", f"the manifest must be of this {self.ptk.kind} PTK, got another"
            )
        if self.manifest.unit not in UNITS:
            raise InvalidInput(
                "STATE_INVALID", f"unit must be one of {UNITS}, got {self.manifest.unit!r:.40}"
            )
        object.__setattr__(
            self,
            "arrays",
            MappingProxyType({name: _frozen(self.arrays[name]) for name in self.arrays}),
        )

    @classmethod
    def make(
        cls,
        ptk: Ptk,
        arrays: Arrays,
        *,
        name: str,
        epsilon: Number,
        delta: Number = 0,
        cost: Cost | None = None,
        version: int = 1,
        stream: str = "",
        unit: str = "event",
        records_per_unit: int = 1,
        composition: str = "",
        windows: tuple[str, str] | None = None,
        samples: int | None = None,
        target: float | None = None,
        previous: str | None = None,
        minimum: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        over: str | None = None,
        parts: tuple[tuple[str, str], ...] | None = None,
    ) -> Self:
        """A state with its certificate; the cost is that of the PTK unless another was charged."""
        charged = (
            cost
            if cost is not None
            else ptk.cost(epsilon, delta, records_per_unit=records_per_unit)
        )
        manifest = Manifest(
            name=name,
            kind=ptk.kind,
            config=ptk.as_json(),
            version=version,
            stream=stream,
            unit=unit,
            records_per_unit=records_per_unit,
            epsilon=show(epsilon_exact(epsilon)),
            delta=show(delta_exact(delta)),
            composition=composition,
            cost=charged,
            windows=windows,
            samples=samples,
            target=target,
            code_version=code_version(),
            previous=previous,
            arrays_sha256=hashlib.sha256(_arrays_bytes(arrays)).hexdigest(),
            minimum=minimum,
            error=error,
            over=over,
            parts=parts,
        )
        return cls(ptk, arrays, manifest)

    @property
    def digest(self) -> str:
        """The name of this state: the one under which a lake keeps it."""
        return self.manifest.digest

    def _repr_html_(self) -> str:
        """As a notebook shows it: what it is, what it cost, and what it gives."""
        told = self.manifest
        body = {
            "kind": told.kind,
            "stream": told.stream,
            "epsilon": told.epsilon,
            "delta": told.delta,
            "unit": told.unit,
            "samples": told.samples,
            "target": told.target,
            "windows": " to ".join(told.windows) if told.windows else None,
            "reads": ", ".join(self.ptk.feature_columns()),
            "gives": ", ".join(self.ptk.feature_names()),
            "digest": self.digest,
        }
        return html_of(f"{told.name}@v{told.version}", body)

    def to_bytes(self) -> tuple[bytes, bytes]:
        """(safetensors, manifest). The same state gives the same bytes."""
        return _arrays_bytes(self.arrays), self.manifest.to_bytes()

    @classmethod
    def from_bytes(
        cls, arrays: bytes, manifest: bytes, *, kinds: Mapping[str, type[Ptk]] | None = None
    ) -> Self:
        """Read `to_bytes`. The kind must be installed, or given in ``kinds``."""
        certificate = Manifest.from_bytes(manifest)
        if hashlib.sha256(arrays).hexdigest() != certificate.arrays_sha256:
            raise InvalidInput(
                "STATE_DAMAGED",
                f"the arrays of {certificate.name!r} do not have the digest in the manifest: "
                "fetch the state again",
            )
        if kinds is not None and certificate.kind in kinds:
            ptk: Ptk = kinds[certificate.kind].from_json(certificate.config)
        else:
            ptk = registry.make(certificate.kind, certificate.config)
        try:
            loaded = safetensors.numpy.load(arrays)
        except (SafetensorError, KeyError, ValueError):
            raise InvalidInput(
                "STATE_DAMAGED", "the arrays are not safetensors: fetch the state again"
            ) from None
        return cls(ptk, loaded, certificate)


@cache
def code_version() -> str:
    """The release that trains: part of every certificate."""
    try:
        return version("ptkstore")
    except PackageNotFoundError:
        return "unknown"


def _arrays_bytes(arrays: Arrays) -> bytes:
    """Safetensors of the arrays in the order of their names."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
            raise InvalidInput(
                "STATE_INVALID", f"array {name!r} must be numeric, got {type(array).__name__}"
            )
    # safetensors writes memory as it lies: order, layout and byte order must be fixed before.
    ordered = {
        name: np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
        for name in sorted(arrays)
    }
    return bytes(safetensors.numpy.save(ordered))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
