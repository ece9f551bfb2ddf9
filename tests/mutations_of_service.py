"""Mistakes in the profiler and in the service: streams, engine, workers, RPCs; `tests.mutations` makes them one at a time."""

from __future__ import annotations

from tests.mutations_of_ptks import Mutation

__all__ = ["OF_SERVICE"]


def _in(part: str, path: str, tests: tuple[str, ...], *rows: tuple[str, str, str], only: str = "") -> list[Mutation]:
    paths = tuple(f"tests/{name}.py" for name in tests)
    return [Mutation(f"{part}: {name}", path, old, new, paths, only) for name, old, new in rows]


_PROFILER = [
    *_in(
        "profiler",
        "profiler/tasks.py",
        ("auditing/test_profiler",),
        (
            "a look at half noise",
            "return LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit * UNIT)",
            "return LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit * UNIT // 2)",
        ),
        (
            "the lower test at half noise",
            "reach = records_per_unit * UNIT + math.ceil(2 * TOLERANCE * UNIT)",
            "reach = records_per_unit * UNIT // 2 + math.ceil(2 * TOLERANCE * UNIT)",
        ),
        (
            "a look without noise",
            'noisy = task.release.release([told], source=task.noise.source(f"{task.charge.name}/sum")).values',
            "noisy = [told]",
        ),
        (
            "a lower test without noise",
            'noisy = task.lower.release([value], source=task.noise.source(f"{task.charge.name}/lower")).values',
            "noisy = [value]",
        ),
        (
            "a look with an unnoised lowest bit",
            "return Answer(value=int(noisy[0]), invalid=invalid)",
            "return Answer(value=int(noisy[0]) // 2 * 2 + told % 2, invalid=invalid)",
        ),
        (
            "a lower test with an unnoised lowest bit",
            "return Answer(arrays=arrays, value=int(noisy[0]))",
            "return Answer(arrays=arrays, value=int(noisy[0]) // 2 * 2 + value % 2)",
        ),
    ),
    *_in(
        "profiler",
        "profiler/tasks.py",
        ("profiler/test_profiler_privacy",),
        ("the count of invalid losses for free", "return release.cost + count.cost if", "return release.cost if"),
        ("tasks share a charge and records", "        check_disjoint(task.piece for task in sharing)\n", ""),
        ("losses that are none are summed as they are", "np.where(valid, losses, 1.0) * UNIT", "losses * UNIT"),
        ("the best state is told as the worst", "told = min(sums) if", "told = max(sums) if"),
        (
            "texts of errors leave",
            'return f"{type(error).__name__}{reason}{where}"',
            'return f"{type(error).__name__}{reason}{where} {error}"',
        ),
    ),
    *_in(
        "profiler",
        "profiler/schedule.py",
        ("auditing/test_profiler", "profiler/test_schedule", "profiler/test_profiler_privacy"),
        (
            "the lower test for free",
            "tested = price if plan.lower is None else price + plan.lower.cost",
            "tested = price",
        ),
        (
            "looks take what counts take",
            "(1 - _COUNT_PART - read_part) / looks",
            "(1 - read_part) / looks",
        ),
        ("every look at the whole price", "(1 - _COUNT_PART - read_part) / looks", "(1 - _COUNT_PART - read_part)"),
        (
            "every reading at the price of all",
            "look_release(terms.prices.looks * read_part / READINGS, units)",
            "look_release(terms.prices.looks * read_part, units)",
        ),
        ("pieces that overlap", "    check_disjoint({charge.piece for charge in whole.charges})\n", ""),
    ),
    *_in(
        "profiler",
        "profiler/pieces.py",
        ("profiler/test_profiler_privacy", "profiler/test_schedule"),
        ("pieces may overlap", "if other.start < one.stop:", "if other.start < one.start:"),
    ),
    *_in(
        "profiler",
        "profiler/bounds.py",
        ("profiler/test_bounds",),
        ("the failures of all looks for one", "UPPER_FAILURE / looks)", "UPPER_FAILURE)"),
        (
            "a user's records for one",
            "rate = _rate(centre, promised) / records_per_unit",
            "rate = _rate(centre, promised)",
        ),
        ("the centre at what is promised", "UNIT * Fraction(7, 4)))", "UNIT * Fraction(2)))"),
        (
            "thresholds rounded down",
            "return math.ceil(best * UNIT * (1 + 1e-9)) + 1",
            "return math.floor(best * UNIT / 2)",
        ),
    ),
]

_STREAMS = [
    *_in(
        "tags",
        "ptkstore/streams/tags.py",
        ("streams/test_tags",),
        ("tags that count", "return require_secure(source).words(count)", "return np.arange(count, dtype=np.uint64)"),
        ("users without a key", "digest_size=8, key=key, person=_PERSON", "digest_size=8, person=_PERSON"),
        ("numbers without a key", "algorithms.AES256(key)", "algorithms.AES256(bytes(32))"),
    ),
    *_in(
        "frames",
        "ptkstore/streams/frames.py",
        ("streams/test_frames",),
        ("the same nonce always", "nonce = os.urandom(12)", "nonce = bytes(12)"),
    ),
    *_in(
        "vault",
        "ptkstore/streams/vault.py",
        ("streams/test_vault", "streams/test_crashes"),
        ("keys are not overwritten", "os.pwrite(descriptor, _GONE, 0)", "os.pwrite(descriptor, b'', 0)"),
        ("keys are not removed", "                path.unlink()\n", ""),
        ("new keys for an old stream", "if not path.exists() and any(self.files.iterdir()):", "if path.is_dir():"),
        ("an overwritten key opens", "return len(key) == KEY_BYTES and key != _GONE", "return len(key) == KEY_BYTES"),
    ),
    *_in(
        "reader",
        "ptkstore/streams/reader.py",
        ("streams/test_reader",),
        ("opened without a charge", "        ledger.spend_all(grants)\n", ""),
        (
            "a grant for another stream",
            "if not isinstance(grant, Grant) or grant.stream != self.spec.name:",
            "if not isinstance(grant, Grant):",
        ),
        ("an open block is read", "if self._spans.block_number(block) >= sealed_before:", "if sealed_before < 0:"),
        ("the start of a range is forgotten", "inside |= (tags >= np.uint64(one.start)) & (", "inside |= ("),
        (
            "counts without noise",
            "noisy = mechanism.release(np.array(counts, dtype=np.int64), source=noise).values",
            "noisy = np.array(counts, dtype=np.int64)",
        ),
        ("what follows the seal is ignored", " or last.stop != os.fstat(descriptor).st_size:", ":"),
    ),
    *_in(
        "reader",
        "ptkstore/streams/reader.py",
        ("streams/test_cohorts",),
        (
            "one record of a user too many",
            "before[inverse] + rank < self._most",
            "before[inverse] + rank <= self._most",
        ),
        ("users begin anew with every frame", "np.minimum(before + counts, self._most))", "before)"),
    ),
    *_in(
        "opened",
        "ptkstore/streams/opened.py",
        ("streams/test_opened",),
        ("anybody's word opens", "if not hmac.compare_digest(opened.mac, _mac(opened)):", "if not opened.store:"),
        (
            "any range is open",
            "if not any(first <= start and stop <= last for first, last in ranges):",
            "if not ranges:",
        ),
    ),
    *_in(
        "streams",
        "ptkstore/streams/spec.py",
        ("streams/test_spec", "streams/test_reader"),
        (
            "a user's records count as one",
            "LaplaceRelease(epsilon=self.count_epsilon, sensitivity=self.records_per_user)",
            "LaplaceRelease(epsilon=self.count_epsilon, sensitivity=1)",
        ),
        (
            "counts beyond the policy",
            "_require(Fraction(self.count_epsilon) <= Fraction(self.policy.epsilon),",
            "_require(bool(self.count_epsilon),",
        ),
        (
            "columns without public bounds",
            'if one.upper is None or (one.lower is None and one.type != "string"):',
            "if not one.name:",
        ),
    ),
    *_in(
        "streams",
        "ptkstore/streams/spans.py",
        ("streams/test_reader", "streams/test_writer"),
        ("quarantine is a block", "        if name.startswith(QUARANTINE):\n", "        if not name:\n"),
    ),
]

_ENGINE = [
    *_in(
        "workers",
        "ptkstore/workers/train.py",
        ("engine/test_workers",),
        (
            "tags that were not opened",
            "                require_open(records.opened, start, stop)\n",
            "                pass\n",
        ),
        (
            "every PTK sees all records",
            "begin, end = int(one.begins[first]), int(one.begins[last])",
            "begin, end = 0, one.batch.num_rows",
        ),
        (
            "texts of errors leave",
            'return f"{type(error).__name__}{reason}{where}"',
            'return f"{type(error).__name__}{reason}{where} {error}"',
        ),
    ),
    *_in(
        "rpc",
        "ptkstore/rpc/permissions.py",
        ("rpc/test_permissions",),
        ("producers close windows", '_STREAM + "CloseWindow": _may("",', '_STREAM + "CloseWindow": _may("producer",'),
        ("readers see who called", '"ListAuditEntries": _may("", scope', '"ListAuditEntries": _may("reader", scope'),
        ("readers register PTKs", '"RegisterPtk": _may("developer",', '"RegisterPtk": _may("reader developer",'),
        ("developers approve plans", '"ApprovePlan": _may("",', '"ApprovePlan": _may("developer",'),
    ),
    *_in(
        "rpc",
        "ptkstore/rpc/callers.py",
        ("rpc/test_permissions", "rpc/test_credentials"),
        ("roles do not matter", "if not self.roles & permission.roles:", "if not self.name:"),
        ("limits do not matter to the whole", 'if permission.scope == "whole" and self.limited:', "if not self.name:"),
        (
            "any stream is seen",
            "return stream in self.streams if self.streams else not self.ptks",
            "return bool(stream)",
        ),
        ("any secret is right", "if row is None or not right or not", "if row is None or not"),
        ("no limit to calls", "            if left < needed:\n", "            if left < -1e300:\n"),
        ("tokens never end", " or not row.alive(int(self._clock() * 1000)):", ":"),
    ),
]

OF_SERVICE: list[Mutation] = [*_PROFILER, *_STREAMS, *_ENGINE]
