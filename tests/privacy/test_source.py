"""Noise bits: uniform, never repeated across forks, threads and keys, and nothing else is admitted
outside tests.
"""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import stats

from ptklib.errors import InsecureNoise, InvalidInput
from ptklib.privacy.noise import source
from ptklib.privacy.noise.sampler import discrete_laplace
from ptklib.privacy.noise.source import BitSource, SystemSource, require_secure
from ptklib.testing.noise import PlantedSource, SeededSource, planted_noise


def _run(script: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestSystemSource:
    @pytest.mark.parametrize(
        "count", [0, 1, 2, 3, 1000, source._CHUNK_BYTES // 8 + 1, source._REKEY_BYTES // 8 + 3]
    )
    def test_gives_as_many_words_as_asked(self, count: int) -> None:
        words = SystemSource().words(count)
        assert words.shape == (count,)
        assert words.dtype == np.uint64
        assert words.flags.writeable
        assert len(np.unique(words)) == count  # a collision has probability below 2**-21

    def test_refuses_a_negative_count(self) -> None:
        with pytest.raises(InvalidInput) as caught:
            SystemSource().words(-1)
        assert caught.value.reason == "WORD_COUNT_INVALID"

    def test_every_bit_is_fair(self) -> None:
        words = SystemSource().words(1 << 18)
        ones = [int(np.sum((words >> np.uint64(i)) & np.uint64(1))) for i in range(64)]
        assert min(stats.binomtest(n, len(words)).pvalue for n in ones) > 1e-9
        # Power: a bit that is one in 51% of the words is found.
        assert stats.binomtest(int(0.51 * len(words)), len(words)).pvalue < 1e-9

    def test_bytes_are_uniform(self) -> None:
        counts = np.bincount(SystemSource().words(1 << 18).view(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-9

    def test_instances_and_keys_never_repeat_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source, "_REKEY_BYTES", 1 << 12)
        monkeypatch.setattr(source, "_CHUNK_BYTES", 1 << 10)
        words = np.concatenate([SystemSource().words(5000), SystemSource().words(5000)])
        assert len(np.unique(words)) == len(words)

    def test_takes_a_new_key_after_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []
        urandom = os.urandom

        def counted(size: int) -> bytes:
            asked.append(size)
            return urandom(size)

        monkeypatch.setattr(os, "urandom", counted)
        plain = SystemSource()
        for _ in range(2 * source._REKEY_BYTES // source._CHUNK_BYTES):
            plain.words(source._CHUNK_BYTES // 8)
        assert asked == [32, 32]

    def test_a_changed_process_id_alone_drops_the_key(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plain = SystemSource()
        plain.words(1)
        before = plain._cipher
        plain.words(1)
        assert plain._cipher is before
        monkeypatch.setattr(os, "getpid", lambda: 1_000_000_007)
        plain.words(1)
        assert plain._cipher is not before

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    @pytest.mark.parametrize("pid", ["os.getpid", "lambda: 7"])
    def test_a_forked_child_differs_from_its_parent(self, pid: str) -> None:
        """Also when the process id happens to be the same: the fork hook does not rely on it."""
        out = _run(
            "import os, sys\n"
            "from ptklib.privacy.noise.source import require_secure\n"
            f"os.getpid = {pid}\n"
            "s = require_secure(None); s.words(3)\n"
            "s._lock.acquire()\n"  # as if another thread were drawing at the moment of the fork
            "child = os.fork()\n"
            "if child: os.waitpid(child, 0); s._lock.release()\n"
            "print(*s.words(4), flush=True)\n"
            "os._exit(0)\n"
        )
        child, parent = out.splitlines()
        assert not set(child.split()) & set(parent.split())

    def test_threads_share_it_without_repeating_words(self) -> None:
        shared = SystemSource()
        parts: list[np.ndarray] = []
        threads = [
            threading.Thread(target=lambda: parts.extend(shared.words(n) for n in range(200)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        words = np.concatenate(parts)
        assert len(words) == 8 * 199 * 100
        assert len(np.unique(words)) == len(words)

    def test_copies_do_not_carry_the_key(self) -> None:
        plain = SystemSource()
        plain.words(1)
        for twin in (copy.copy(plain), copy.deepcopy(plain), pickle.loads(pickle.dumps(plain))):
            assert twin._cipher is None
            assert not set(twin.words(8).tolist()) & set(plain.words(8).tolist())

    def test_words_cannot_be_replaced_on_an_instance(self) -> None:
        with pytest.raises(AttributeError):
            SystemSource().words = SeededSource(1).words  # type: ignore[method-assign]


class TestGate:
    def test_none_is_the_one_system_source(self) -> None:
        assert type(require_secure(None)) is SystemSource
        assert require_secure(None) is require_secure(None)
        own = SystemSource()
        assert require_secure(own) is own

    def test_other_sources_are_refused(self) -> None:
        subclass = type("Sub", (SystemSource,), {})
        others: list[BitSource] = [SeededSource(1), PlantedSource([1]), subclass()]
        for other in others:
            with pytest.raises(InsecureNoise) as caught:
                require_secure(other)
            assert caught.value.reason == "TEST_NOISE_OUTSIDE_TESTS"
            with pytest.raises(InsecureNoise):
                discrete_laplace(3, 1, source=other)

    def test_the_gate_opens_for_the_block_only(self) -> None:
        seeded = SeededSource(1)
        with planted_noise():
            assert require_secure(seeded) is seeded
            with planted_noise():
                pass
            assert require_secure(seeded) is seeded
        with pytest.raises(InsecureNoise):
            require_secure(seeded)
        with pytest.raises(KeyError), planted_noise():
            raise KeyError
        with pytest.raises(InsecureNoise):
            require_secure(seeded)

    def test_the_gate_does_not_open_other_threads(self) -> None:
        found: list[str] = []

        def other_thread() -> None:
            try:
                require_secure(SeededSource(1))
            except InsecureNoise as error:
                found.append(error.reason)

        with planted_noise():
            thread = threading.Thread(target=other_thread)
            thread.start()
            thread.join()
        assert found == ["TEST_NOISE_OUTSIDE_TESTS"]

    def test_the_gate_refuses_outside_pytest(self) -> None:
        out = _run(
            "from ptklib.testing.noise import planted_noise\n"
            "from ptklib.errors import InsecureNoise\n"
            "try:\n  with planted_noise(): print('open')\n"
            "except InsecureNoise as e: print(e.reason)\n"
        )
        assert out.strip() == "TEST_NOISE_OUTSIDE_TESTS"

    def test_the_library_never_imports_the_test_tools(self) -> None:
        out = _run(
            "import sys, ptklib.privacy.noise.sampler, ptklib.privacy.fixed_point\n"
            "ptklib.privacy.noise.sampler.discrete_laplace(3, 1)\n"
            "print([m for m in sys.modules if m.startswith('ptklib.testing') or m == 'mpmath'])\n"
        )
        assert out.strip() == "[]"


class TestTestSources:
    def test_a_seed_repeats_whatever_the_sizes_of_calls(self) -> None:
        whole = SeededSource(5).words(100)
        parts = SeededSource(5)
        assert np.array_equal(whole, np.concatenate([parts.words(n) for n in (0, 1, 30, 69)]))
        assert not np.array_equal(whole, SeededSource(6).words(100))

    def test_planted_words_come_first(self) -> None:
        planted = PlantedSource([7, 2**64 - 1], then=SeededSource(1))
        assert planted.words(1).tolist() == [7]
        assert planted.left == 1
        assert planted.words(2).tolist() == [2**64 - 1, int(SeededSource(1).words(1)[0])]
        assert planted.left == 0

    def test_planted_words_without_a_successor_run_out(self) -> None:
        with pytest.raises(LookupError):
            PlantedSource([1]).words(2)
