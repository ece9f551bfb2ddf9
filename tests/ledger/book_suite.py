"""What every ledger must do for many threads, many processes, and processes that are killed.
Subclass `BookSuite`, and give it a fixture ``address`` of a place with no ledger yet (see
`places`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from ptklib.errors import BudgetExceeded, Refused
from ptklib.ledger.grants import Grant
from ptklib.ledger.policy import Policy
from ptklib.ledger.queries import Rest
from ptklib.ledger.slices import Slice, TagRange
from ptklib.privacy.costs import GaussianCost, PureCost
from ptklib.privacy.filters import make_filter
from tests.ledger.places import open_book, open_ledger

TENTH = PureCost(epsilon="0.1")

CLIENT = """
import sys
from ptklib.errors import BudgetExceeded
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from tests.ledger.places import open_ledger
with open_ledger(sys.argv[1]) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        try:
            print(ledger.charge("s", [Slice(("a",))], PureCost(epsilon=sys.argv[3])), flush=True)
        except BudgetExceeded:
            print("refused", flush=True)
"""


def spawn(address: str, count: int, epsilon: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, address, str(count), epsilon],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


class BookSuite:
    """The contract of `Ledger`, wherever its journal is."""

    def test_what_was_said_is_there_after_reopening(self, address: str) -> None:
        with open_book(address, "a", "b") as ledger:
            grant = ledger.reserve("s", [Slice(("a", "b"))], TENTH, key="k")
            charged = ledger.charge("s", [Slice(("a",))], TENTH)
            state = ledger.digest()
        with open_ledger(address) as ledger:
            assert ledger.digest() == state
            assert ledger.left("s", ["a"]) == Fraction(8, 10)
            assert ledger.left("s", ["b"]) == Fraction(9, 10)
            assert ledger.fate(grant.charge) == "RESERVED"
            assert ledger.fate(charged) == "SPENT"
            # After a crash between reserve and its answer, the key finds the same grant again.
            assert ledger.reserve("s", [Slice(("a", "b"))], TENTH, key="k") == grant
            ledger.spend(grant)
            assert ledger.find("s", "k") == grant.charge
            with pytest.raises(Refused) as refusal:
                ledger.reserve("s", [Slice(("a", "b"))], TENTH, key="k")
            assert refusal.value.reason == "KEY_REUSED"
            assert list(ledger.streams()) == ["s"]

    def test_a_stream_of_the_default_policy_takes_gaussians(self, address: str) -> None:
        with open_ledger(address) as ledger:
            ledger.create_stream("s", Policy())
            ledger.add_blocks("s", ["a"])
            assert ledger.streams()["s"].composition == "renyi"
            cost = GaussianCost(sigma=50)
            best = make_filter("gaussian", Fraction(1), Fraction(1, 10**6))
            optimum = best.capacity[0] // best.demand(cost)[0]
            admitted = 0
            with suppress(BudgetExceeded):
                while True:
                    ledger.charge("s", [Slice(("a",))], cost)
                    admitted += 1
            assert 0.85 * optimum <= admitted <= optimum
            ledger.verify()

    def test_queries(self, address: str) -> None:
        with open_book(address, "a", "b", "c") as ledger:
            low = TagRange.of_shares(0, "0.5")
            ledger.charge("s", [Slice(("a", "b"), low)], PureCost(epsilon="0.6"))
            ledger.retire("s", ["c"], why="expired")
            assert ledger.blocks("s") == ["a", "b", "c"]
            assert ledger.blocks("s", retired=True) == ["c"]
            assert ledger.blocks("s", retired=False) == ["a", "b"]
            assert ledger.affordable("s", PureCost(epsilon="0.5")) == []
            assert ledger.affordable(
                "s", PureCost(epsilon="0.5"), TagRange.of_shares("0.5", 1)
            ) == ["a", "b"]
            assert ledger.left("s", ["a"], TagRange.of_shares("0.5", 1)) == 1
            assert [loss for _, loss in ledger.block("s", "a").losses] == [(600_000_000, 0), (0, 0)]
            kinds = [entry["kind"] for entry in ledger.history()]
            assert kinds == ["stream", "blocks", "reserve", "retire"]
            assert ledger.rests("s", ["c", "nowhere", "a"]) == {
                "c": Rest(Fraction(0), "expired"),
                "a": Rest(ledger.left("s", ["a"]), None),
            }
            assert ledger.count_retired("s") == 1
            head = ledger.head
            found = ledger.commits([3, 99, 1, 4, 3])
            assert [(one.seq, [entry["kind"] for entry in one.entries]) for one in found] == [
                (1, ["stream"]),
                (3, ["reserve"]),
                (4, ["retire"]),
            ]
            assert (found[-1].seq, found[-1].mac) == head == ledger.head
            assert ledger.commits([]) == []

    def test_threads_share_one_budget_exactly(self, address: str) -> None:
        with open_book(address) as ledger:
            admitted: list[int] = []
            cost = PureCost(epsilon="0.01")

            def client() -> None:
                for _ in range(25):
                    with suppress(BudgetExceeded):
                        admitted.append(ledger.charge("s", [Slice(("a",))], cost))

            threads = [threading.Thread(target=client) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(admitted) == list(range(100))
            assert ledger.left("s", ["a"]) == 0
            # Callers that wait share a commit.
            assert ledger.verify().commits <= 102

    def test_processes_share_one_budget_exactly(self, address: str) -> None:
        with open_book(address) as ledger:
            clients = [spawn(address, 30, "0.02") for _ in range(3)]
            for client in clients:
                assert client.stdout is not None
                assert client.stdout.readline() == "ready\n"
            outputs = [client.communicate("go\n", timeout=120)[0].split() for client in clients]
            admitted = sorted(
                int(word) for output in outputs for word in output if word != "refused"
            )
            assert admitted == list(range(50))
            assert sum(word == "refused" for output in outputs for word in output) == 40
            # This process sees what the others did.
            assert ledger.left("s", ["a"]) == 0
            ledger.verify()

    def test_a_process_killed_in_full_run_loses_no_spend(self, address: str) -> None:
        open_book(address).close()
        seen = -1
        for stop_after in (1, 7, 40, 111):
            client = spawn(address, 100_000, "0.000001")
            assert client.stdout is not None
            assert client.stdin is not None
            client.stdout.readline()
            client.stdin.write("go\n")
            client.stdin.flush()
            for _ in range(stop_after):
                seen = int(client.stdout.readline())
            os.kill(client.pid, signal.SIGKILL)
            rest = client.stdout.read().split("\n")[:-1]
            client.wait()
            client.stdout.close()
            client.stdin.close()
            seen = int(rest[-1]) if rest else seen
            with open_ledger(address) as ledger:
                entries = [entry for entry in ledger.history() if "spent_at_ms" in entry]
                spent = [entry["charge"] for entry in entries]
                assert spent == list(range(len(spent)))
                assert len(spent) in (seen + 1, seen + 2), (
                    "all that was acknowledged, and at most the one in flight"
                )
                assert ledger.left("s", ["a"]) == 1 - Fraction(len(spent), 10**6)
                ledger.verify()

    def test_reserve_all_gives_one_grant_a_request(self, address: str) -> None:
        with open_book(address, "a", "b") as ledger:
            known = ledger.reserve("s", [Slice(("b",))], TENTH, key="second")
            requests = [
                ledger.request("s", [Slice(("a",))], TENTH),
                ledger.request("s", [Slice(("b",))], TENTH, key="second"),
                ledger.request("s", [Slice(("a", "b"))], TENTH, key="third"),
            ]
            grants = ledger.reserve_all(requests)
            assert [grant.charge for grant in grants] == [1, known.charge, 2]
            assert [grant.slices[0].blocks for grant in grants] == [("a",), ("b",), ("a", "b")]
            with pytest.raises(BudgetExceeded):
                ledger.reserve_all(
                    [
                        ledger.request("s", [Slice(("a",))], PureCost(epsilon="0.5"))
                        for _ in range(2)
                    ]
                )
            assert ledger.left("s", ["a"]) == Fraction(8, 10)
            for grant in grants:
                ledger.spend(Grant.from_token(grant.token))
