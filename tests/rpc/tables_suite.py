"""What the tables of the service must do, on any database.

Subclass it, with a fixture ``url`` of an empty database.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from ptklib.errors import SageError
from ptkstore.metadata import Metadata, MetadataDamaged
from ptkstore.metadata.access.audit import Decision
from ptkstore.metadata.access.requests import Begun
from ptkstore.metadata.tables import audit


@pytest.fixture
def service(url: str) -> Iterator[Metadata]:
    with Metadata.open(url) as metadata:
        with metadata.write() as tx:
            tx.streams.create("s", {})
            tx.ptks.create("p", "s", "mean", {}, 0.25, 1)
        yield metadata


def decisions(*outcomes: str) -> list[Decision]:
    return [
        Decision(5, "ann", "/ptkstore.v1.PtkService/GetPtk", "p", outcome) for outcome in outcomes
    ]


class ServiceTablesSuite:
    """Operations, requests, tokens, notifications and the audit log."""

    def test_an_operation_runs_until_it_ends_once(self, service: Metadata) -> None:
        with service.write() as tx:
            first = tx.operations.start("CloseWindow", "s", until_ms=7, at_ms=1)
            second = tx.operations.start("CloseWindow", "s")
        with service.write() as tx:
            tx.operations.add_windows(first.id, [3, 4])
            assert tx.operations.add_windows(first.id, [4, 5]).windows == [3, 4, 5]
            tx.operations.set_progress(first.id, "training")
            assert [one.id for one in tx.operations.running()] == [first.id, second.id]
            tx.operations.end(first.id, "FAILED", reason="BUDGET_EXCEEDED", message="no", at_ms=9)
            ended = tx.operations.end(first.id, "DONE", at_ms=10)
            tx.operations.set_progress(first.id, "late")
        assert (ended.status, ended.reason, ended.ended_ms, ended.progress) == (
            "FAILED",
            "BUDGET_EXCEEDED",
            9,
            "training",
        )
        with service.read() as tx:
            assert [one.id for one in tx.operations.list("s")] == [second.id, first.id]
            assert [one.id for one in tx.operations.list(before=second.id, limit=5)] == [first.id]
            assert [one.id for one in tx.operations.running()] == [second.id]
            with pytest.raises(SageError, match="OPERATION_UNKNOWN"):
                tx.operations.get(99)

    def test_a_request_is_answered_once_and_its_id_is_its_own(self, service: Metadata) -> None:
        with service.write() as tx:
            assert tx.requests.begin("ann", "r1", "M", "d", at_ms=1) == Begun(None, None)
            assert tx.requests.note("ann", "r1", {"from_ms": 1}) == {"from_ms": 1}
            assert tx.requests.note("ann", "r1", {"from_ms": 2}) == {"from_ms": 1}
            assert tx.requests.begin("ann", "r1", "M", "d", at_ms=2) == Begun({"from_ms": 1}, None)
            assert tx.requests.answer("ann", "r1") is None
            assert tx.requests.keep("ann", "r1", "M", "d", b"\x00first", at_ms=2)
            assert not tx.requests.keep("ann", "r1", "M", "d", b"second", at_ms=2)
            tx.requests.forget("ann", "r1")
            assert tx.requests.begin("ann", "r1", "M", "d", at_ms=2) == Begun(
                {"from_ms": 1}, b"\x00first"
            )
            assert tx.requests.answer("ann", "r1") == b"\x00first"
            # One that was forgotten meanwhile is written again with its answer.
            assert tx.requests.keep("eve", "r1", "M", "d", b"only", at_ms=1)
            assert tx.requests.answer("eve", "r1") == b"only"
            assert tx.requests.begin("bob", "r1", "M", "other", at_ms=2) == Begun(None, None)
            for method, digest in (("M", "other"), ("N", "d")):
                with pytest.raises(SageError, match="REQUEST_ID_REUSED"):
                    tx.requests.begin("ann", "r1", method, digest, at_ms=2)
            for bad in ("", "x" * 65, "a b", "é", "a\n"):
                with pytest.raises(SageError, match="REQUEST_ID_INVALID"):
                    tx.requests.begin("ann", bad, "M", "d", at_ms=2)
            tx.requests.forget("bob", "r1")
            assert tx.requests.begin("bob", "r1", "M", "fresh", at_ms=3) == Begun(None, None)
            tx.requests.sweep(2)
            assert tx.requests.begin("ann", "r1", "M", "other", at_ms=4) == Begun(None, None)
            assert tx.requests.begin("bob", "r1", "M", "fresh", at_ms=4) == Begun(None, None)
            with pytest.raises(SageError, match="REQUEST_ID_REUSED"):
                tx.requests.begin("bob", "r1", "M", "stale", at_ms=4)

    def test_a_token_lives_until_it_expires_or_is_revoked(self, service: Metadata) -> None:
        with service.write() as tx:
            made = tx.tokens.add(
                "id1", "ann", "h" * 64, roles=["reader"], ptks=["p"], expires_ms=100, at_ms=1
            )
            assert (made.roles, made.streams, made.ptks) == (("reader",), (), ("p",))
            assert (made.alive(99), made.alive(100)) == (True, False)
            with pytest.raises(SageError, match="TOKEN_EXISTS"):
                tx.tokens.add("id2", "ann", "h" * 64, roles=[])
            assert tx.tokens.revoke("ann", at_ms=50).revoked_ms == 50
            assert tx.tokens.revoke("ann", at_ms=60).revoked_ms == 50
            with pytest.raises(SageError, match="TOKEN_UNKNOWN"):
                tx.tokens.revoke("bob", at_ms=50)
        with service.read() as tx:
            found = tx.tokens.find("id1")
            assert found is not None
            assert not found.alive(51)
            assert tx.tokens.find("none") is None
            assert [one.name for one in tx.tokens.list()] == ["ann"]

    def test_the_audit_log_is_chained_and_only_grows(self, service: Metadata) -> None:
        with service.write() as tx:
            tx.audit.add_all(decisions("ALLOWED", "DENIED"))
        with service.write() as tx:
            tx.audit.add_all(decisions("PTK_UNKNOWN"))
        with service.read() as tx:
            newest = tx.audit.list(limit=2)
            assert [one.outcome for one in newest] == ["PTK_UNKNOWN", "DENIED"]
            assert [one.outcome for one in tx.audit.list(before=newest[-1].id)] == ["ALLOWED"]
            assert tx.audit.verify() == 3
        for change in (audit.update().values(outcome="ALLOWED"), audit.delete()):
            with (
                pytest.raises(Exception, match="append-only"),
                service._database.write() as connection,
            ):
                connection.execute(change)
        with service._database.write() as connection:
            connection.execute(
                audit.insert().values(
                    at_ms=1, who="x", what="y", subject="", outcome="", digest="f" * 64
                )
            )
        with service.read() as tx, pytest.raises(MetadataDamaged, match="AUDIT_DAMAGED"):
            tx.audit.verify()

    def test_marks_go_up_and_late_notifications_are_kept(self, service: Metadata) -> None:
        with service.write() as tx:
            subscription = tx.subscriptions.add(1, "host:1").id
            assert tx.notifications.mark(subscription) is None
            for version in (0, 3, 2):
                tx.notifications.set_mark(subscription, version)
            assert tx.notifications.mark(subscription) == 3
            late = tx.notifications.put(
                subscription, 4, attempts=1, status="LATE", reason="UNAVAILABLE", due_ms=10
            )
            dead = tx.notifications.put(
                subscription, 4, attempts=2, status="DEAD", reason="UNAVAILABLE", due_ms=20
            )
            assert (dead.id, dead.attempts, dead.status) == (late.id, 2, "DEAD")
            assert tx.notifications.list(status="LATE") == ()
            assert tx.notifications.list(subscription=subscription) == (dead,)
            assert tx.notifications.list(after=dead.id) == ()
            tx.notifications.arrived(subscription, 4)
            with pytest.raises(SageError, match="DELIVERY_UNKNOWN"):
                tx.notifications.get(dead.id)
            tx.notifications.put(subscription, 5, attempts=1, status="LATE", reason="", due_ms=10)
            tx.notifications.forget(subscription)
            tx.subscriptions.remove(subscription)

    def test_times_are_indexed(self, service: Metadata) -> None:
        with service._database.read() as connection:
            found = {
                tuple(one["column_names"]) for one in sa.inspect(connection).get_indexes("requests")
            }
        assert ("created_ms",) in found
