"""The pages about PTKs: what they say, over a directory and over a server, and who may do what
there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptkstore import Store
from ptkstore.api.views import ProfileView
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.console.pages.ptk import difference
from ptkstore.drawing.profile_svg import draw
from ptkstore.engine.access.tokens import make_token
from tests.console.running import Client, Running, console
from tests.console.stores import MARKUP
from tests.console.test_pages import words
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.small import serving
from tests.rpc.store_suite import filled


def names(client: Client, query: str) -> list[str]:
    part = client.get(f"ptks?{query}").text.partition('id="ptks"')[2]
    return re.findall(r'<th scope="row"><a href="ptk\?name=([\w-]+)"', part)


def test_ptks_are_searched_sorted_and_filtered(running: Running) -> None:
    client = running.signed_in()
    every = [
        "groups",
        "hour-counts",
        "hour-fast",
        "hour-speed",
        "hour-spread",
        "joining",
        "leaving",
        "too-sharp",
    ]
    assert (
        names(client, "")
        == names(client, "sort=nonsense&page=99")
        == names(client, "page=x")
        == every
    )
    assert names(client, "sort=-name") == every[::-1]
    assert names(client, "find=SP") == ["hour-speed", "hour-spread"]
    assert names(client, "find=clusters") == ["groups"]
    assert names(client, "status=REJECTED") == ["too-sharp"]
    assert names(client, "status=NONSENSE") == every
    assert names(client, "stream=quiet") == []
    assert names(client, "sort=target")[0] == "too-sharp"
    text = words(client.get("ptks").text)
    assert "Train 5" in text
    assert "Wait for a profile 1" in text
    assert "1–8 of 8 PTKs" in text
    assert "No PTKs on quiet" in words(client.get("ptks?stream=quiet").text)
    assert "No PTKs match “zzz”" in client.get("ptks?find=zzz").text
    assert (
        MARKUP
        not in client.get(
            "ptks?find=%3Cscript%3Ealert(1)%3C/script%3E&status=%22%3E&sort=%22%3E"
        ).text
    )


def test_a_ptk_tells_of_itself(shown: tuple[Running, Store]) -> None:
    running, store = shown
    client = running.signed_in()
    page = client.get("ptk?name=hour-speed").text
    text = words(page)
    (first, second) = store.states("hour-speed")
    assert "statistics active" in text
    assert "Target 0.15" in text
    assert "Promised loss ≤ 0.15 with confidence 95 %" in text
    assert (
        f"Chosen point ε {float(second.epsilon):.4g} on {second.samples:,} samples, in version 2"
        in text
    )
    assert re.search(r"v2 2026-01-02 [\d.]+ 0 [\d,]+ – [0-9a-f]{12}", text)
    assert re.search(r"v1 2026-01-01 ", text)
    assert text.index("v2 2026") < text.index("v1 2026")
    assert "learned from 2 windows: 2026-01-02 2026-01-01" in text
    assert "Speaks of all windows" in text
    sampled = (first.samples or 0) + (second.samples or 0)
    assert f"Counts in it are of the about {sampled:,} records that its trainings sampled" in text
    assert "From a closed form over public bounds" in text
    assert 'class="chosen"' in page
    for level, samples in zip(
        *[getattr(store.profile("hour-speed"), name) for name in ("levels", "samples")], strict=True
    ):
        assert f"{float(level):.4g} {samples:,}" in text
    assert "The server calls nobody for this PTK" in words(client.get("ptk?name=hour-fast").text)
    assert "nothing was changed" in text
    assert first.digest != second.digest


def test_ptks_that_do_not_train_say_why(running: Running) -> None:
    client = running.signed_in()
    rejected = words(client.get("ptk?name=too-sharp").text)
    assert "Why it was rejected" in rejected
    assert re.search(r"a target of 0\.\d+ instead of 0.0001", rejected)
    assert "No version yet" in rejected
    assert "Promised loss – not reached at any epsilon" in rejected
    assert "Trains not at all it was rejected" in rejected
    retired = words(client.get("ptk?name=leaving").text)
    assert "Trains no more it is retired" in retired
    assert "Promised loss – nothing is promised: it does not train" in retired
    for text in (rejected, retired):
        assert "every window of" not in text
        assert "Every version keeps" not in text
    assert "Every version keeps" not in rejected
    waiting = words(client.get("ptk?name=groups").text)
    assert "What it waits for" in waiting
    assert re.search(r"takes about [\d,]+ records", waiting)
    retired = client.get("ptk?name=leaving").text
    assert "retire-ptk" not in retired
    assert client.get("ptk").headers["location"] == "ptks"
    unknown = client.get("ptk?name=nobody")
    assert (unknown.status, "PTK_UNKNOWN" in unknown.text) == (404, True)


def test_a_certificate_is_the_manifest(shown: tuple[Running, Store]) -> None:
    running, store = shown
    client = running.signed_in()
    answer = client.get("certificate.json?name=hour-speed&version=2")
    body = json.loads(answer.text)
    assert (
        answer.headers["content-disposition"]
        == 'attachment; filename="hour-speed-v2-certificate.json"'
    )
    assert (body["name"], body["version"], body["unit"], body["epsilon"]) == (
        "hour-speed",
        2,
        "event",
        store.get_state("hour-speed@v2").manifest.epsilon,
    )
    for version in ("", "x", "%C2%B2", "-1"):
        assert client.get(f"certificate.json?name=hour-speed&version={version}").status == 400
    assert client.get("certificate.json?name=hour-speed&version=99").status == 404
    assert client.get("certificate.json?name=%22%0d%0ax&version=1").status in (400, 404)


def test_nothing_raw_is_shown(running: Running) -> None:
    client = running.signed_in()
    for path in (
        "ptks",
        "ptk?name=hour-speed",
        "ptk?name=groups",
        "certificate.json?name=hour-speed&version=1",
    ):
        assert CANARY.split("-")[1] not in client.get(path).text


def test_what_was_changed_in_a_configuration(empty_store: Store) -> None:
    empty_store.create_stream(spec())
    empty_store.register("p", stream="rides", kind="statistics", config=config(), target=0.3)
    for statistic in ("count", "mean"):
        empty_store.update_config("p", config(statistic))
    with console(DirectorySource(empty_store, "x")) as running:
        client = running.signed_in()
        page = client.get("ptk?name=p").text
        assert "Changed in version 3 since version 2" in page
        assert re.search(r'<span class="new">\+ .*mean', page)
        assert re.search(r'<span class="gone">- .*count', page)
        older = client.get("ptk?name=p&config=2").text
        assert "Changed in version 2 since version 1" in older
        assert re.search(r'<span class="new">\+ .*count', older)
        assert "nothing was changed" in client.get("ptk?name=p&config=1").text


def test_best_effort_tells_its_epsilon_and_its_error(empty_store: Store) -> None:
    filled(empty_store)
    ask: dict[str, Any] = {"stream": "rides", "config": config()}
    empty_store.register("rest", kind="statistics", epsilon="0.3", **ask)
    groups = {
        "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
        "clusters": 2,
    }
    tell: dict[str, Any] = {"stream": "rides", "kind": "clusters", "config": groups}
    empty_store.register("groups", epsilon="0.1", **tell)
    empty_store.register("far", kind="statistics", epsilon="7", **ask)
    with console(DirectorySource(empty_store, "x")) as running:
        client = running.signed_in()
        before = words(client.get("ptk?name=rest").text)
        assert "Best effort ε 0.3" in before
        assert "Each version tells its error once it is trained" in before
        empty_store.run("rides", until_ms=FIRST_MS + DAY_MS)
        (state,) = empty_store.states("rest")
        assert state.error is not None
        pages = {name: words(client.get(f"ptk?name={name}").text) for name in ("rest", "groups")}
        assert f"Version 1 says of its error: {state.error.text}" in pages["rest"]
        (told,) = empty_store.states("groups")
        assert told.error is not None
        assert f"Version 1 says of its error: {told.error.text}" in pages["groups"]
        assert "The mean loss on records that its training did not touch" in pages["groups"]
        assert "Promised loss" not in pages["rest"]
        assert re.search(r"a few|64 records at least", pages["rest"])
        listed = words(client.get("ptks").text)
        assert "best effort, ε 0.3" in listed
        plan = words(client.get("plan?stream=rides").text)
        assert "best effort" in plan
        rejected = words(client.get("ptk?name=far").text)
        assert "State epsilon 0.8 or less" in rejected
        assert "error at most" in words(client.get("operations?stream=rides").text)
        asked = client.get("what-if?stream=rides&retarget=rest&to=0.2")
        assert asked.status == 200
        assert "instead of best effort, epsilon 0.3" in words(asked.text)
        forked = client.get("what-if?stream=rides&fork=rest&name=copy&fork_to=0.2")
        assert forked.status == 200


def test_differences_line_by_line() -> None:
    found = difference({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]})
    assert ("gone", "    2") in found
    assert ("new", "    3") in found
    assert ("same", '  "a": 1,') in found


def test_who_is_told_and_how_far(empty_store: Store) -> None:
    filled(empty_store)
    empty_store.run("rides", until_ms=FIRST_MS + DAY_MS)
    with empty_store.parts.metadata.write() as tx:
        ptk = tx.ptks.named("hour-speed").id
        for port, version in (("one:1", 1), ("two:2", 0)):
            tx.notifications.set_mark(tx.subscriptions.add(ptk, port).id, version)
    with console(DirectorySource(empty_store, "x")) as running:
        text = words(running.signed_in().get("ptk?name=hour-speed").text)
    assert "one:1 v1 up to date" in text
    assert "two:2 nothing yet 1 behind" in text


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str, dict[str, str]]]:
    """A store of our own behind a server, for we change it; its address, and a token for each
    role.
    """
    with serving(tmp_path_factory.mktemp("own"), auth={"required": True}) as (server, behind):
        for name in ("rides", "quiet"):
            behind.create_stream(spec(name=name))
        behind.register(
            "hour-speed", stream="rides", kind="statistics", config=config(), target=0.3
        )
        parts = behind.parts
        made = {
            role: make_token(parts.metadata, role, roles=[role], now_ms=parts.now_ms())[0]
            for role in ("reader", "developer", "operator")
        }
        limited = make_token(
            parts.metadata, "limited", roles=["operator"], streams=["quiet"], now_ms=parts.now_ms()
        )[0]
        yield behind, server.address, made | {"limited": limited}


@pytest.mark.parametrize("role", ["reader", "developer", "operator"])
def test_who_may_retire_a_ptk(own: tuple[Store, str, dict[str, str]], role: str) -> None:
    store, address, tokens = own
    name = f"short-{role}"
    store.register(name, stream="quiet", kind="statistics", config=config("count"), target=0.9)
    may = role != "reader"
    with console(ServerSource(address, token=tokens[role])) as running:
        client = running.signed_in()
        assert ("Retire this PTK" in client.get(f"ptk?name={name}").text) == may
        csrf = client.get("overview").csrf
        assert client.post("retire-ptk", {"name": name}).status == 403
        answer = client.post("retire-ptk", {"csrf": csrf, "name": name})
        assert (answer.status, store.ptk(name).status) == (
            (303, "RETIRED") if may else (403, "ACTIVE")
        )
        if may:
            assert answer.headers["location"] == f"ptk?name={name}"
            assert "retired" in words(client.get(f"ptk?name={name}").text)
            # Twice is once.
            assert client.post("retire-ptk", {"csrf": csrf, "name": name}).status == 303
            entries = store.audit_entries(find=f"DeregisterPtk {name}").entries
            assert {one.who for one in entries} == {role}
        assert client.post("retire-ptk", {"csrf": csrf, "name": "nobody"}).status == (
            404 if may else 403
        )


def test_retiring_in_a_directory(empty_store: Store) -> None:
    empty_store.create_stream(spec())
    empty_store.register("p", stream="rides", kind="statistics", config=config(), target=0.3)
    with console(DirectorySource(empty_store, "x")) as running:
        client = running.signed_in()
        csrf = client.get("ptk?name=p").csrf
        for _ in range(2):
            assert client.post("retire-ptk", {"csrf": csrf, "name": "p"}).status == 303
    assert empty_store.ptk("p").status == "RETIRED"


def test_a_limited_caller_sees_its_own(own: tuple[Store, str, dict[str, str]]) -> None:
    store, address, tokens = own
    store.register("seen", stream="quiet", kind="statistics", config=config("count"), target=0.9)
    with console(ServerSource(address, token=tokens["limited"])) as running:
        client = running.signed_in()
        assert "seen" in names(client, "")
        assert "hour-speed" not in client.get("ptks").text
        assert client.get("ptk?name=hour-speed").status == 403
        assert client.get("certificate.json?name=hour-speed&version=1").status == 403


def test_the_picture_of_a_measured_profile() -> None:
    measured = (
        {"level": "0.1", "status": "REACHED", "samples": 4000, "band": [2000, 9000]},
        {"level": "1", "status": "REACHED", "samples": 400, "band": [0, 900]},
    )
    profile = ProfileView(
        "p", "ACTIVE", "measured", ("0.01", "0.1", "1"), (None, 4000, 400), measured=measured
    )
    text = draw(profile, ("0.1", 4000))
    assert text.count('class="dot"') == 2
    assert 'class="band"' in text
    assert "ε = 0.1, n = 4,000" in text
    assert "style=" not in text
    dot = re.search(r'class="dot" cx="([\d.]+)" cy="([\d.]+)"', text)
    ring = re.search(r'class="chosen" cx="([\d.]+)" cy="([\d.]+)"', text)
    assert dot is not None
    assert ring is not None
    assert dot.groups() == ring.groups()
    # Both axes are logarithmic: a tenth of the samples is as far down as a tenth of the epsilon is
    # to the left.
    assert draw(ProfileView("p", "ACTIVE", "none", ("1",), (None,)), None) == ""
    assert "<script" not in draw(ProfileView(MARKUP, "ACTIVE", "analytic", ("1",), (5,)), None)


def test_a_version_tells_every_window_that_it_learned_from(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        store.create_stream(spec(n_max=20_000))
        store.register("a", stream="rides", kind="statistics", config=config(), target=0.2)
        for number in range(4):
            store.push("rides", day(number, 4000))
            store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
        with console(DirectorySource(store, "a directory")) as running:
            text = words(running.signed_in().get("ptk?name=a").text)
    assert "The newest version learned from 4 windows: 2026-01-04 2026-01-03 2026-01-02" in text


def test_words_are_explained_where_they_stand(running: Running) -> None:
    client = running.signed_in()
    for path in ("overview", "plan?stream=rides", "ptk?name=hour-speed"):
        terms = re.findall(
            r'<abbr class="term" tabindex="0" title="([^"]+)">([^<]+)<', client.get(path).text
        )
        assert len(terms) >= 3, path
        assert all(len(told) > 20 for told, _ in terms)
