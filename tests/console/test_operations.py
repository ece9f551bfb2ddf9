"""The pages about operations: windows step by step, events, deliveries, the doctor and the audit
log.
"""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.moments import millis_of
from ptkstore.api.views import CycleView, EventView, Finding, TrainedLine
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.console.pages.doctor import advice_for
from ptkstore.console.pages.events import event_line
from ptkstore.console.pages.operations import STEPS, cycle_line
from ptkstore.engine.access.tokens import make_token
from ptkstore.engine.window.cycle import STEPS as ENGINE_STEPS
from ptkstore.engine.window.views import shortened
from ptkstore.metadata.access.audit import Decision
from tests.console.running import Client, Running, console
from tests.console.stores import MARKUP
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.small import serving
from tests.rpc.store_suite import filled

ACTIONS = ("run-windows", "retry-delivery", "examine")
OPERATORS_ONLY = ("deliveries", "doctor", "audit", "audit.csv")


@contextmanager
def both(kind: str, path: Path) -> Iterator[tuple[Store, Running, Client]]:
    """A store that may be changed, its console, and an operator at it; in a directory or behind a
    server.
    """
    if kind == "embedded":
        with Store(path, workers=0) as store, console(DirectorySource(store, "x")) as running:
            yield store, running, running.signed_in()
        return
    with serving(path, auth={"required": True}) as (server, store):
        token = make_token(
            store.parts.metadata, "ann", roles=["operator"], now_ms=store.parts.now_ms()
        )[0]
        with console(ServerSource(server.address, token=token)) as running:
            yield store, running, running.signed_in()


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def sign_in(running: Running, token: str) -> Client:
    client = running.client()
    client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": token})
    return client


def changed(client: Client) -> list[tuple[str, str, str, str]]:
    """Who changed what, as the audit log has it, newest first."""
    rows = csv.DictReader(io.StringIO(client.get("audit.csv?changes=1").text))
    return [(row["who"], row["what"].split(" ")[1], row["subject"], row["outcome"]) for row in rows]


def test_the_page_tells_what_each_window_went_through(running: Running) -> None:
    text = running.signed_in().get("operations?stream=rides").text
    assert "<title>Operations of rides" in text
    assert text.index("2026-01-02") < text.index("2026-01-01")
    for step, what in STEPS.items():
        assert len(re.findall(f'class="done" title="{what}">{step}', text)) == 2
    assert "What became of 5 PTKs" in text
    assert re.search(r"≈ [0-9,]+ records, plan optimal, 5 states published", text)
    assert "ptk.state" in text
    quiet = running.signed_in().get("operations?stream=quiet").text
    assert "No window has run yet" in quiet
    assert running.signed_in().get("operations?stream=nowhere").status == 404
    assert "Show older ones" in running.signed_in().get("operations?stream=rides&show=1").text
    for odd in ("0", "-3", "x", "99999999"):
        assert running.signed_in().get(f"operations?stream=rides&show={odd}").status == 200


def test_the_steps_are_those_of_the_engine() -> None:
    assert tuple(STEPS) == ENGINE_STEPS


def test_a_store_without_streams(empty_store: Store) -> None:
    with console(DirectorySource(empty_store, "x")) as running:
        client = running.signed_in()
        assert "No streams, so nothing to do" in client.get("operations").text
        assert "Nothing has happened yet" in client.get("events").text
        assert "Everything has arrived" in client.get("deliveries").text
        assert "sage serve" in client.get("audit").text


def test_a_window_with_thousands_of_ptks_stays_small() -> None:
    outcomes = ["PUBLISHED"] * 4998 + ["TRAIN_LOST", "SKIPPED"]
    lines = tuple(
        TrainedLine(f"p{k:04}", outcome, 1, "0.5", 10) for k, outcome in enumerate(outcomes)
    )
    line = cycle_line(
        shortened(CycleView("rides", 20454, "RUNNING", tuple(STEPS)[:4], "OPTIMAL", 10, lines), 25),
        86_400,
    )
    assert (line.published, line.lost, line.trained_count, len(line.trained)) == (4998, 1, 5000, 25)
    assert line.trained[0].outcome == "TRAIN_LOST"
    assert [one.state for one in line.steps] == ["done"] * 4 + ["now"] + [""] * 4
    done = cycle_line(CycleView("rides", 20454, "DONE", ("sealed",), "", 0, ()), 86_400)
    assert "now" not in {one.state for one in done.steps}


@pytest.mark.parametrize("kind", ["embedded", "remote"])
def test_a_window_that_published_less_than_it_should_is_red_everywhere(
    kind: str, tmp_path: Path
) -> None:
    with both(kind, tmp_path) as (store, _, client):
        store.create_stream(spec(policy=Policy(epsilon=1, delta=0)))
        for name, statistic, target in (("large", "mean", 0.05), ("small", "count", 0.02)):
            answer = store.register(
                name, stream="rides", kind="statistics", config=config(statistic), target=target
            )
            assert answer.status == "ACTIVE"
        store.push("rides", day(0, 1500), seq=0)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        text = client.get("operations?stream=rides").text
        assert '<span class="badge bad">short</span>' in text
        assert "1 of 2 PTKs got no new version: large (WINDOW_TOO_SMALL)" in text
        assert "Send at least" in text
        for step, what in STEPS.items():
            shade = "bad" if step in ("planned", "published") else "done"
            assert f'class="{shade}" title="{what}">{step}' in text
        assert "window.short" in text
        parts = client.get("overview").text
        assert '<li class="bad"' in parts
        assert "the last window published less than it should" in parts
        plan = client.get("plan?stream=rides").text
        assert "The window carried some of the PTKs" in plan
        assert "WINDOW_TOO_SMALL" in plan


class Held:
    """A cycle that waits before each step until it is let go on."""

    def __init__(self, store: Store) -> None:
        self.free = {step: threading.Event() for step in STEPS}
        store.parts.observers.add(self._hold)

    def _hold(self, step: str, moment: str) -> None:
        if moment == "begins" and step in self.free:
            assert self.free[step].wait(30)


@pytest.mark.parametrize("kind", ["embedded", "remote"])
def test_steps_are_told_as_they_are_written(kind: str, tmp_path: Path) -> None:
    with both(kind, tmp_path) as (store, running, client):
        filled(store)
        held = Held(store)
        page = client.get("operations?stream=rides")
        path = re.search(r'data-events="([^"]+)"', page.text)
        assert path is not None
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        connection.request("GET", "/" + path[1].replace("&amp;", "&"), headers={"cookie": cookies})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        # It takes longer than the console waits: the windows go on behind the page.
        began = client.post(
            "run-windows", {"csrf": page.csrf, "stream": "rides", "until": "2026-01-02"}
        )
        assert (began.status, began.headers["location"]) == (303, "operations?stream=rides&began=1")
        told: list[list[str]] = []
        for step in STEPS:
            held.free[step].set()
            while not told or step not in told[-1]:
                line = answer.readline().decode()
                assert line
                if line.startswith("data: "):
                    cycles = json.loads(line[6:])["cycles"]
                    told.append(cycles[0]["steps"] if cycles else [])
        assert told[-1] == list(STEPS)
        # One after the other, and not all in the end.
        assert len({len(steps) for steps in told}) >= len(STEPS)
        until(lambda: store.cycles("rides")[0].status == "DONE")
        connection.close()


@pytest.mark.parametrize("kind", ["embedded", "remote"])
def test_an_operator_runs_what_is_complete(kind: str, tmp_path: Path) -> None:
    with both(kind, tmp_path) as (store, _running, client):
        filled(store)
        page = client.get("operations?stream=rides")
        assert "Run the windows that are complete" in page.text
        form = {"csrf": page.csrf, "stream": "rides"}
        for wrong, reason in (
            ("tomorrow", "TIME_INVALID"),
            (MARKUP, "TIME_INVALID"),
            ("2050-01-01", "WATERMARK_TOO_FAR"),
        ):
            answer = client.post("run-windows", form | {"until": wrong})
            assert answer.status == 400
            assert re.search(rf'id="until-wrong"[^>]*>[^<]*<code>{reason}', answer.text)
            assert 'aria-invalid="true"' in answer.text
            assert MARKUP not in answer.text
        assert client.post("run-windows", form | {"stream": "nowhere"}).status == 404
        assert store.cycles("rides") == []
        assert client.post("run-windows", form | {"until": "2026-01-02"}).status == 303
        until(lambda: [one.status for one in store.cycles("rides")] == ["DONE"])
        assert "1 state published" in client.get("operations?stream=rides&began=1").text
        if kind == "remote":
            assert ("ann", "CloseWindow", "rides", "ALLOWED") in changed(client)
            text = client.get("operations?stream=rides").text
            assert "Asked for" in text
            assert "CloseWindow" in text


def test_what_readers_may_not_do(
    remote: Running, tokens: dict[str, str], served: tuple[Store, str]
) -> None:
    before = served[0].cycles("rides"), served[0].deliveries()
    for who in ("reader", "developer"):
        client = sign_in(remote, tokens[who])
        page = client.get("operations?stream=rides")
        assert page.status == 200
        assert not [path for path in (*ACTIONS, *OPERATORS_ONLY) if path in page.text]
        assert client.get("events").status == client.get("events.csv").status == 200
        for path in OPERATORS_ONLY:
            assert client.get(path).status == 403
        for path in ACTIONS:
            form = {"csrf": page.csrf, "stream": "rides", "until": "2026-01-04", "delivery": "1"}
            answer = client.post(path, form)
            assert answer.status == 403
            assert "PERMISSION_DENIED" in answer.text
    # One who operates some streams only is told so by the server.
    limited = sign_in(remote, tokens["limited"])
    assert limited.get("operations?stream=quiet").status == 200
    assert limited.get("operations?stream=rides").status == 403
    for path in ("deliveries", "audit"):
        assert limited.get(path).status == 403
    assert (served[0].cycles("rides"), served[0].deliveries()) == before


def test_events_are_searched_turned_and_kept(running: Running) -> None:
    client = running.signed_in()
    whole = list(csv.DictReader(io.StringIO(client.get("events.csv").text)))
    assert [int(row["number"]) for row in whole] == sorted(
        (int(row["number"]) for row in whole), reverse=True
    )
    assert {row["kind"] for row in whole} >= {
        "stream.created",
        "ptk.state",
        "ptk.rejected",
        "ptk.retired",
    }
    found = client.get("events?find=state+spread").text
    assert len(re.findall(r'<th scope="row"', found)) == 2
    assert "No events match" in client.get("events?find=zzz").text
    assert MARKUP not in client.get(f"events?find={MARKUP}").text
    assert client.get("events?from=nonsense").status == 400


def test_long_logs_are_turned_from_the_newest_on(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        with store.parts.journal.writing() as tx:
            tx.events.add_all([("ptk.state", f"p{k}", {"version": k}) for k in range(120)])
            decided = (
                Decision(
                    k,
                    "ann" if k % 2 else "bob",
                    "/ptkstore.v1.PtkService/GetPtk",
                    f"p{k}",
                    "ALLOWED",
                )
                for k in range(120)
            )
            tx.audit.add_all(decided)
        with console(DirectorySource(store, "x")) as running:
            client = running.signed_in()
            for path, expected, query in (
                ("events", 120, ""),
                ("audit", 120, ""),
                ("audit", 60, "?find=ann"),
            ):
                rows, answer, pages = 0, client.get(path + query), 0
                while True:
                    rows += len(re.findall(r'<th scope="row"', answer.text))
                    pages += 1
                    older = re.search(r'rel="next" href="([^"]+)"', answer.text)
                    if older is None:
                        break
                    answer = client.get(older[1].replace("&amp;", "&"))
                    assert 'rel="first"' in answer.text
                assert (rows, pages) == (expected, -(-expected // 50))


def test_what_a_line_about_an_event_says() -> None:
    body = {
        "reason": "there is none.",
        "version": 2,
        "window": 20454,
        "epsilon": "0.5",
        "config": {"x": 1},
        "empty": "",
    }
    line = event_line(EventView(1, "ptk.state", "a", body, 5), spec())
    assert line.details == "There is none; version 2; window of 2026-01-01; epsilon 0.5"
    assert (
        event_line(EventView(1, "x", "a", {"reason": "x" * 500}, 5)).details
        == "X" + "x" * 159 + "…"
    )


@pytest.mark.parametrize("kind", ["embedded", "remote"])
def test_a_dead_letter_is_tried_again(kind: str, tmp_path: Path) -> None:
    with both(kind, tmp_path) as (store, _running, client):
        filled(store)
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named("hour-speed").id, "127.0.0.1:7401")
            tx.notifications.set_mark(one.id, 1)
            dead = tx.notifications.put(
                one.id, 1, attempts=9, status="DEAD", reason="UNAVAILABLE", due_ms=0
            )
            late = tx.notifications.put(
                one.id, 2, attempts=1, status="LATE", reason="INTERNAL", due_ms=2**42
            )
        page = client.get("deliveries")
        assert re.findall(r'name="delivery" value="(\d+)"', page.text) == [
            str(dead.id),
            str(late.id),
        ]
        assert re.findall(
            r'name="delivery" value="(\d+)"', client.get("deliveries?dead=1").text
        ) == [str(dead.id)]
        answer = client.post("retry-delivery", {"csrf": page.csrf, "delivery": str(dead.id)})
        assert (answer.status, answer.headers["location"]) == (303, f"deliveries?tried={dead.id}")
        assert f"Delivery {dead.id} is due now" in client.get(answer.headers["location"]).text
        if kind == "remote":
            assert [one[1] for one in changed(client)] == ["RetryDelivery"]
        else:
            assert "dead letter</span>" not in client.get("deliveries").text
        assert client.post("retry-delivery", {"csrf": page.csrf, "delivery": "999"}).status == 404
        assert client.post("retry-delivery", {"csrf": page.csrf, "delivery": "x"}).status == 400
        assert "is due now" not in client.get(f"deliveries?tried={MARKUP}").text


@pytest.mark.parametrize("kind", ["embedded", "remote"])
def test_the_doctor_says_what_to_do(kind: str, tmp_path: Path) -> None:
    with both(kind, tmp_path) as (store, _running, client):
        filled(store)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        page = client.get("doctor")
        assert "Examine the store" in page.text
        assert "findings-title" not in page.text
        assert (
            client.post("examine", {"csrf": page.csrf, "canaries": f"{CANARY}\n\n"}).headers[
                "location"
            ]
            == "doctor"
        )
        text = client.get("doctor").text
        assert "chain intact" in text
        assert "1 canaries are nowhere" in text
        assert '<li class="error">' not in text
        (tmp_path / "notes.txt").write_text(f"left behind: {CANARY}")
        client.post("examine", {"csrf": page.csrf, "canaries": CANARY})
        text = client.get("doctor").text
        assert "notes.txt" in text
        assert " somebody" in text
        assert "find what wrote them" in text
        assert CANARY not in text
        for wrong in ("abc", "\n".join(f"text {k}" for k in range(51))):
            answer = client.post("examine", {"csrf": page.csrf, "canaries": wrong})
            assert answer.status == 400
            assert re.search(r'id="canaries-wrong"[^>]*>[^<]*<code>VALUE_INVALID', answer.text)
        if kind == "remote":
            found = client.get("audit?find=RunDoctor").text
            # Those of one minute are one entry, and counted.
            assert len(re.findall("OperationService RunDoctor", found)) in (1, 2)


@pytest.mark.parametrize(
    "what",
    [
        "ledger",
        "writing of rides",
        "lake",
        "exposure of rides",
        "cycles of rides",
        "outbox",
        "canaries",
        "else",
    ],
)
def test_every_bad_finding_has_advice(what: str) -> None:
    assert len(advice_for(Finding("ERROR", what, "x"))) > 20
    assert advice_for(Finding("OK", what, "x")) == ""


def test_the_audit_log_is_searched(tmp_path: Path) -> None:
    with both("remote", tmp_path) as (store, _running, client):
        filled(store)
        client.get("plan?stream=rides")
        text = client.get("audit").text
        assert "PlanService GetPlan" in text
        assert "EventService ListAuditEntries" in text
        assert "PlanService GetPlan" not in client.get("audit?changes=1").text
        only = client.get("audit?find=getplan+ann").text
        assert set(re.findall(r'data-label="What"[^>]*>([^<]*)<', only)) == {"PlanService GetPlan"}
        assert "No entries match" in client.get("audit?find=zzz").text
        rows = list(csv.DictReader(io.StringIO(client.get("audit.csv?find=getplan").text)))
        assert {(row["who"], row["what"], row["subject"], row["outcome"]) for row in rows} == {
            ("ann", "PlanService GetPlan", "rides", "ALLOWED")
        }
        assert client.get("audit?from=nonsense").status == 400


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-01-01", FIRST_MS),
        ("2026-01-01T12:00", FIRST_MS + DAY_MS // 2),
        ("2026-01-01T01:00+01:00", FIRST_MS),
    ],
)
def test_times(text: str, ms: int) -> None:
    assert millis_of(text) == ms
    with pytest.raises(InvalidInput, match="TIME_INVALID"):
        millis_of("x" + text)
