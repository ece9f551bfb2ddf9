"""Every decision is in the audit log, nothing is lost from it, and nothing happens that cannot be
written there.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ptkstore.metadata import Metadata
from ptkstore.metadata.access.audit import Decision
from ptkstore.rpc.gate.auditing import Auditor
from ptkstore.v1 import ptk_pb2, stream_pb2
from tests.rpc.calling import Clients


def test_every_decision_is_in_the_audit_log(clients: Clients) -> None:
    token = clients.token("ann", "developer")
    clients.call("/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="hour-speed"))
    clients.call("/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="nobody"))
    clients.call("/ptkstore.v1.StreamService/CreateStream", token)
    clients.call(
        "/ptkstore.v1.PtkService/DeregisterPtk", token, ptk_pb2.DeregisterPtkRequest(name="foreign")
    )
    clients.call(
        "/ptkstore.v1.PtkService/GetPtk", None, ptk_pb2.GetPtkRequest(name="x\x00y" + "z" * 500)
    )
    clients.call(
        "/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="x\x00y" + "z" * 500)
    )
    log = clients.audit()
    assert {
        ("ann", "GetPtk", "hour-speed", "ALLOWED"),
        ("ann", "GetPtk", "nobody", "ALLOWED"),
        ("ann", "GetPtk", "nobody", "PTK_UNKNOWN"),
        ("ann", "CreateStream", "", "DENIED"),
        ("ann", "DeregisterPtk", "foreign", "ALLOWED"),
        ("unknown", "GetPtk", "", "DENIED"),
        ("ann", "GetPtk", "(no name)", "PTK_UNKNOWN"),
    } <= set(log)


@pytest.mark.parametrize(
    ("spec_json", "subject"),
    [
        ('{"name": "fresh"}', "fresh"),
        ("{", ""),
        ("[1]", ""),
        ("[" * 100_000, ""),
        ('{"name": "x\\u0000"}', "(no name)"),
    ],
)
def test_who_makes_a_stream_is_logged_with_its_name(
    clients: Clients, spec_json: str, subject: str
) -> None:
    token = clients.token("root", "operator")
    request = stream_pb2.CreateStreamRequest(request_id="r-1", spec_json=spec_json)
    clients.call("/ptkstore.v1.StreamService/CreateStream", token, request)
    assert ("root", "CreateStream", subject, "ALLOWED") in clients.audit()


def test_nothing_is_done_that_cannot_be_logged(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptkstore.metadata.access.audit import Audit
    from ptkstore.metadata.errors import MetadataUnavailable

    token = clients.token("ann", "operator")

    def full(*_: object) -> None:
        raise MetadataUnavailable("METADATA_UNAVAILABLE", "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Audit, "add_links", full)
        request = ptk_pb2.DeregisterPtkRequest(name="foreign")
        answer = clients.call("/ptkstore.v1.PtkService/DeregisterPtk", token, request)
        assert answer == "UNAVAILABLE METADATA_UNAVAILABLE"
        patch.setattr("ptkstore.rpc.gate.auditing.MAX_WAITING", 0)
        read = clients.call(
            "/ptkstore.v1.PtkService/GetPtk", token, ptk_pb2.GetPtkRequest(name="foreign")
        )
        assert read == "UNAVAILABLE AUDIT_UNAVAILABLE"
    assert clients.store.ptk("foreign").status == "ACTIVE"


def test_two_servers_share_one_log_and_nothing_is_lost(tmp_path: Path) -> None:
    with Metadata.open(tmp_path / "meta.db") as one, Metadata.open(tmp_path / "meta.db") as two:
        auditors = [Auditor(one), Auditor(two)]

        def write(number: int) -> None:
            for place in range(60):
                decision = Decision(place, f"w{number}", "what", "", "ALLOWED")
                auditor = auditors[number % 2]
                auditor.now(decision) if place % 7 == 0 else auditor.soon(decision)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for auditor in auditors:
            auditor.close()
        with one.read() as tx:
            assert tx.audit.verify() == 240
            entries = tx.audit.list()
        for number in range(4):
            mine = [entry.at_ms for entry in reversed(entries) if entry.who == f"w{number}"]
            assert mine == list(range(60))
