"""What the page What if says, what each role may do, and that what is applied is applied once,
whole and on the record.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from ptkstore import Store
from ptkstore.api.changes import Changes
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.console.page.background import BackgroundWork
from ptkstore.console.pages import what_if as page
from ptkstore.console.pages.questions import MOST, Question
from ptkstore.drawing.plan_svg import NARROW, draw, hues_of
from ptkstore.engine.access.tokens import make_token
from tests.console.running import Answer, Client, Running, console
from tests.console.stores import MARKUP, lively
from tests.console.test_pages import plan_of, words
from tests.engine.small import CANARY, config
from tests.rpc.small import serving

ASKED = "what-if?stream=rides&retarget=hour-speed&to=0.3&drop=hour-fast"
ROLES = ("reader", "developer", "operator")


@pytest.fixture(params=["embedded", "remote"])
def changing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Running]]:
    """A store that tests may change, and its console."""
    if request.param == "embedded":
        with Store(tmp_path, workers=0) as store:
            lively(store)
            with console(DirectorySource(store, "a directory")) as running:
                yield store, running
    else:
        with serving(tmp_path, auth={"required": True}) as (server, store):
            lively(store)
            token = make_token(
                store.parts.metadata, "ada", roles=["operator"], now_ms=store.parts.now_ms()
            )[0]
            with console(ServerSource(server.address, token=token)) as running:
                yield store, running


def hidden(answer: Answer, action: str) -> dict[str, str]:
    """The fields of a form as a browser would send them."""
    form = answer.text.partition(f'action="{action}"')[2].partition("</form>")[0]
    fields = re.findall(r'name="(\w+)" value="([^"]*)"', form)
    assert fields, f"the page has no form {action}"
    return {name: unescape(value) for name, value in fields}


def follow(client: Client, answer: Answer) -> str:
    assert answer.status == 303
    assert answer.headers["location"].startswith("what-if?")
    found = client.get(answer.headers["location"])
    assert found.status == 200
    return words(found.text)


def pairs_of(location: str) -> list[tuple[str, str]]:
    found = parse_qsl(urlsplit(location).query, keep_blank_values=True)
    return [one for one in found if one[0] != "told"]


def fates(store: Store) -> dict[str, tuple[str, float | None]]:
    return {one.name: (one.status, one.target) for one in store.ptks()}


def test_both_plans_and_their_difference(running: Running, store: Store) -> None:
    answer = running.signed_in().get(ASKED)
    assert answer.status == 200
    found = store.what_if("rides", Changes(retarget={"hour-speed": 0.3}, remove=("hour-fast",)))
    now, then = found.current.total_samples, found.proposed.total_samples
    assert now is not None
    assert then is not None
    text = words(answer.text)
    assert (
        f"{now - then:,} fewer samples would be held ({100 * (now - then) / now:.0f} %): {then:,} instead of {now:,}."
        in text
    )
    assert f"Samples held {now:,} {then:,}" in text
    assert "hour-fast leaves" in text
    assert re.search(r"hour-speed changes 0\.15 → 0\.3", text)
    assert "no record loses more than ε = 1" in text
    # The same scale: where the plan of now fills its picture, the shorter one does not.
    wide = [
        float(one)
        for one in re.findall(r'class="idle" x="52" y="22" width="([\d.]+)"', answer.text)
    ]
    assert wide[0] == pytest.approx(500)
    assert wide[1] == pytest.approx(500 * then / now, abs=0.1)
    # The same colours.
    colours = [
        dict(re.findall(r"<title>([\w-]+):.*?</title><rect class=\"bar (k\d+)\"", one))
        for one in answer.text.split("<h3>Then")
    ]
    assert colours[0]["joining"] == colours[1]["joining"]
    assert len(set(colours[0].values())) == len(colours[0])


def test_the_use_of_windows_is_asked_and_applied(changing: tuple[Store, Running]) -> None:
    store, running = changing
    assert store.stream("rides").use == "surplus"
    client = running.signed_in()
    asked = client.get("what-if?stream=rides&use=minimum")
    text = words(asked.text)
    assert asked.status == 200
    assert "Loss to expect with the surplus" in text
    assert "Use the minimum of every window of rides instead of the surplus" in text
    sent = client.post("what-if-apply", hidden(asked, "what-if-apply"))
    assert "Use the minimum of every window of rides" in follow(client, sent)
    assert store.stream("rides").use == "minimum"
    wrong = client.get("what-if?stream=rides&use=everything")
    assert wrong.status == 400
    assert "Use must be one of minimum, surplus" in words(wrong.text)


def test_nothing_is_touched_by_asking(changing: tuple[Store, Running]) -> None:
    store, running = changing
    before, events = fates(store), len(store.events(limit=1000))
    client = running.signed_in()
    for path in (
        ASKED,
        "what-if?stream=rides&epsilon=2",
        "what-if?stream=rides&retarget=too-sharp&to=0.3",
    ):
        assert client.get(path).status == 200
    assert (fates(store), len(store.events(limit=1000))) == (before, events)


def test_addresses_are_tidied(running: Running) -> None:
    client = running.signed_in()
    blank = [
        ("retarget", ""),
        ("to", ""),
        ("drop", ""),
        ("fork", ""),
        ("name", ""),
        ("fork_to", ""),
        ("add", ""),
    ]
    typed = [
        ("stream", "rides"),
        ("drop", " hour-fast "),
        *blank,
        ("kind", "counts"),
        ("config", ""),
        ("epsilon", ""),
    ]
    answer = client.get("what-if?" + urlencode(typed))
    assert (answer.status, answer.headers["location"]) == (
        303,
        "what-if?stream=rides&drop=hour-fast",
    )
    assert client.get("what-if").status == 200


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        ("retarget=nobody&to=0.2", "retarget-0", "PTK_UNKNOWN"),
        ("retarget=leaving&to=0.2", "retarget-0", "PTK_RETIRED"),
        ("retarget=&to=0.2", "retarget-0", "VALUE_INVALID"),
        ("retarget=hour-speed&to=", "retarget-0-to", "VALUE_INVALID"),
        ("retarget=hour-speed&to=0", "retarget-0-to", "VALUE_INVALID"),
        ("retarget=hour-speed&to=1", "retarget-0-to", "VALUE_INVALID"),
        ("retarget=hour-speed&to=nan", "retarget-0-to", "VALUE_INVALID"),
        ("retarget=hour-speed&to=0.2&drop=hour-speed", "drop-1", "VALUE_INVALID"),
        ("drop=nobody", "drop-0", "PTK_UNKNOWN"),
        ("fork=nobody&name=x&fork_to=0.2", "fork-0", "PTK_UNKNOWN"),
        ("fork=hour-speed&name=&fork_to=0.2", "fork-0-name", "VALUE_INVALID"),
        ("fork=hour-speed&name=joining&fork_to=0.2", "fork-0-name", "PTK_EXISTS"),
        ("fork=hour-speed&name=x&fork_to=2", "fork-0-to", "VALUE_INVALID"),
        ("add=x&kind=&config={}&add_to=0.2", "add-0-kind", "VALUE_INVALID"),
        ("add=x&kind=nothing&config={}&add_to=0.2", "add-0-kind", "PTK_KIND_UNKNOWN"),
        ("add=x&kind=statistics&config=[]&add_to=0.2", "add-0-config", "JSON_INVALID"),
        ("add=x&kind=statistics&config=" + "[" * 3000 + "&add_to=0.2", "add-0-config", "JSON_INVALID"),
        ("add=x&kind=statistics&config={}&add_to=0.2", "add-0-config", "CONFIG_FIELDS"),
        ("drop=hour-fast&add=x&kind=statistics&config={}&add_to=0.2", "add-1-config", "CONFIG_FIELDS"),
        ("add=&kind=statistics&config={}&add_to=0.2", "add-0", "VALUE_INVALID"),
        ("epsilon=-1", "epsilon", "AMOUNT_NEGATIVE"),
        ("epsilon=x", "epsilon", "AMOUNT_NOT_A_NUMBER"),
        ("epsilon=0.001", "epsilon", "SPEC_INVALID"),
        ("delta=x", "delta", "AMOUNT_NOT_A_NUMBER"),
        ("composition=none", "composition", "POLICY_INVALID_COMPOSITION"),
        ("composition=pure", "composition", "POLICY_INVALID_DELTA"),
        ("n_max=0", "n_max", "VALUE_INVALID"),
        ("n_max=1.5", "n_max", "VALUE_INVALID"),
        ("n_max=%C2%B2", "n_max", "VALUE_INVALID"),
        ("n_max=9999999999999999999999999", "n_max", "VALUE_INVALID"),
        ("&".join(f"drop=p{k}" for k in range(MOST + 1)), "question", "VALUE_INVALID"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_beside_its_field(
    running: Running, query: str, field: str, reason: str
) -> None:
    client = running.signed_in()
    answer = client.get(f"what-if?stream=rides&{query}")
    assert answer.status == 400
    told = re.search(rf'<p class="wrong" id="{field}-wrong">(.*?)</p>', answer.text)
    assert told is not None, re.findall(r'id="([\w-]+)-wrong">(.*?)<', answer.text)
    assert f"<code>{reason}</code>" in told[1]
    assert field == "question" or f'aria-describedby="{field}-wrong"' in answer.text
    assert "Nothing was worked out" in answer.text
    # A script shows what it gets.
    assert client.get(f"what-if?stream=rides&{query}", hx_request="true").status == 200


def test_several_wrong_fields_at_once(embedded: Running) -> None:
    text = (
        embedded.signed_in()
        .get("what-if?stream=rides&epsilon=-1&delta=x&n_max=x&retarget=nobody&to=9")
        .text
    )
    found = re.findall(r'class="wrong" id="([\w-]+)-wrong"', text)
    assert found == ["retarget-0", "retarget-0-to", "epsilon", "delta", "n_max"]


def test_what_is_typed_is_escaped(running: Running) -> None:
    for query in (
        ("retarget", MARKUP),
        ("drop", MARKUP),
        ("config", MARKUP),
        ("epsilon", MARKUP),
        ("kind", MARKUP),
        ("add", MARKUP),
    ):
        answer = running.signed_in().get("what-if?" + urlencode([("stream", "rides"), query]))
        assert MARKUP not in answer.text
    assert running.signed_in().get("what-if?stream=nowhere").status == 404


def test_no_plan_says_why_and_what_would_make_one(running: Running) -> None:
    client = running.signed_in()
    answer = client.get("what-if?stream=rides&retarget=hour-speed&to=0.001")
    text = words(answer.text)
    assert "infeasible There is no plan: the target of hour-speed is not reachable" in text
    assert "the store would refuse them" in text
    assert "what-if-apply" not in answer.text
    links = [unescape(one) for one in re.findall(r'<li>[^<]*<a href="([^"]+)">Try it', answer.text)]
    assert len(links) == 2
    assert "n_max=" in links[0]
    assert "infeasible" not in words(client.get(links[0]).text)
    assert links[1] == "what-if?stream=rides&drop=hour-speed"
    # A newcomer is not dropped, but taken back.
    text = client.get("what-if?stream=rides&fork=hour-speed&name=new&fork_to=0.001").text
    assert re.findall(r'<li>Remove new\. <a href="([^"]+)">Try it', text) == [
        "what-if?stream=rides"
    ]


def test_what_has_no_profile_waits(running: Running) -> None:
    groups = {
        "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
        "clusters": 3,
    }
    query = {
        "stream": "rides",
        "add": "more-groups",
        "kind": "clusters",
        "config": json.dumps(groups),
        "add_to": "0.5",
    }
    text = words(running.signed_in().get("what-if?" + urlencode(query)).text)
    assert "more-groups cannot be planned yet" in text


def test_terms_are_looked_at_and_said_to_be_fixed(running: Running) -> None:
    answer = running.signed_in().get(f"{ASKED}&epsilon=2&n_max=50000")
    text = words(answer.text)
    assert "Every record could lose up to ε = 2 instead of 1." in text
    assert "These changes cannot be applied to rides" in text
    assert "what-if-apply" not in answer.text
    assert "ε ≤ 2, δ ≤ 1e-06, renyi, and holds at most 50,000 samples" in text


def test_applied_whole_and_once(changing: tuple[Store, Running]) -> None:
    store, running = changing
    client = running.signed_in()
    more = {
        "add": "more",
        "kind": "statistics",
        "config": json.dumps(config("count")),
        "add_to": "0.4",
    }
    answer = client.get(
        f"{ASKED}&retarget=too-sharp&to=0.3&fork=joining&name=forked&fork_to=0.35&{urlencode(more)}"
    )
    assert "Retarget hour-speed to 0.3 instead of 0.15." in words(answer.text)
    fields = hidden(answer, "what-if-apply")
    text = follow(client, client.post("what-if-apply", fields))
    assert "Applied Retarget hour-speed to 0.3: it trains from the next window on." in text
    assert "Drop hour-fast: it trains no more, and its states stay." in text
    now, told = fates(store), len(store.events(limit=1000))
    assert now["hour-speed"] == ("ACTIVE", 0.3)
    assert now["too-sharp"] == ("ACTIVE", 0.3)
    assert now["hour-fast"][0] == "RETIRED"
    assert now["forked"] == ("ACTIVE", 0.35)
    assert now["more"] == ("ACTIVE", 0.4)
    assert store.ptk("forked").config == store.ptk("joining").config
    # The same button again.
    assert "Applied" in follow(client, client.post("what-if-apply", fields))
    assert (fates(store), len(store.events(limit=1000))) == (now, told)


def test_what_has_changed_meanwhile_is_not_applied(changing: tuple[Store, Running]) -> None:
    store, running = changing
    client = running.signed_in()
    fields = hidden(client.get(ASKED), "what-if-apply")
    store.update_target("hour-spread", 0.25)
    before = fates(store)
    text = follow(client, client.post("what-if-apply", fields))
    assert (
        "Nothing was changed Something has changed since this was planned: ask again. PLAN_STALE"
        in text
    )
    # The question is still there, with its new answer, which can be applied.
    assert "What it would cost" in text
    assert fates(store) == before
    assert "Applied" in follow(
        client, client.post("what-if-apply", hidden(client.get(ASKED), "what-if-apply"))
    )


def test_a_form_of_nonsense_changes_nothing(changing: tuple[Store, Running]) -> None:
    store, running = changing
    client = running.signed_in()
    before, csrf = fates(store), client.get("overview").csrf
    right = hidden(client.get(ASKED), "what-if-apply")
    for path, fields in (
        ("what-if-apply", {}),
        ("what-if-apply", right | {"token": "x"}),
        ("what-if-apply", right | {"token": right["token"][:-8]}),
        ("what-if-apply", right | {"stream": "quiet"}),
        ("what-if-apply", right | {"request_id": "é"}),
        ("what-if-stream", {}),
        ("what-if-stream", {"stream": "rides", "name": "x", "window": "-1"}),
        ("what-if-stream", {"stream": "rides", "name": "x", "window": "43201"}),
        ("what-if-stream", {"stream": "rides", "name": "../x", "window": "43200"}),
        ("what-if-stream", {"stream": "rides", "name": "quiet", "window": "43200"}),
        (
            "what-if-stream",
            {"stream": "rides", "name": "x", "window": "43200", "question": "n_max=x"},
        ),
        (
            "what-if-stream",
            {"stream": "rides", "name": "x", "window": "43200", "question": "epsilon=-1"},
        ),
    ):
        answer = client.post(path, fields | {"csrf": csrf})
        assert answer.status == 303
        assert not fields or "Nothing was changed" in client.get(answer.headers["location"]).text
    assert fates(store) == before
    assert [one.name for one in store.streams()] == ["quiet", "rides"]


def test_a_recommended_window_is_approved_by_a_new_stream(changing: tuple[Store, Running]) -> None:
    store, running = changing
    client = running.signed_in()
    assert 'href="what-if?stream=rides#window"' in client.get("plan?stream=rides").text
    answer = client.get("what-if?stream=rides")
    assert "A window of 12 h with" in words(answer.text)
    fields = hidden(answer, "what-if-stream")
    assert (fields["name"], fields["window"]) == ("rides-12h", "43200")
    # Twice, as an impatient hand would.
    for _ in range(2):
        text = follow(client, client.post("what-if-stream", fields))
        assert "Send records to rides-12h instead of rides from now on" in text
        assert "rides-12h-joining" in text
    assert store.stream("rides-12h") == replace(
        store.stream("rides"), name="rides-12h", window_seconds=43_200
    )
    assert store.count_ptks("rides-12h") == {}
    location = client.post("what-if-stream", fields).headers["location"]
    assert "Applied" in follow(
        client, client.post("what-if-apply", hidden(client.get(location), "what-if-apply"))
    )
    assert store.count_ptks("rides-12h") == {"ACTIVE": 5}


def test_a_new_stream_has_the_terms_that_were_looked_at(changing: tuple[Store, Running]) -> None:
    store, running = changing
    client = running.signed_in()
    fields = hidden(
        client.get(
            "what-if?stream=rides&drop=joining&retarget=hour-speed&to=0.4&epsilon=2&n_max=50000"
        ),
        "what-if-stream",
    )
    text = follow(client, client.post("what-if-stream", fields | {"name": "wide"}))
    assert "ε ≤ 2, at most 50,000 samples" in text
    made = store.stream("wide")
    assert (made.policy.as_json()["epsilon"], made.n_max) == ("2", 50_000)
    assert "wide-joining" not in text
    location = client.post("what-if-stream", fields | {"name": "wide"}).headers["location"]
    asked = Question.read(pairs_of(location))
    assert {one.values["name"]: one.values["fork_to"] for one in asked.changes}[
        "wide-hour-speed"
    ] == "0.4"


def test_roles_and_the_audit_log(tmp_path: Path) -> None:
    with serving(tmp_path, auth={"required": True}) as (server, store):
        lively(store)
        parts = store.parts
        tokens = {
            role: make_token(parts.metadata, role, roles=[role], now_ms=parts.now_ms())[0]
            for role in ROLES
        }
        limited = make_token(
            parts.metadata, "limited", roles=["operator"], streams=["rides"], now_ms=parts.now_ms()
        )[0]
        with console(ServerSource(server.address)) as running:
            clients: dict[str, Client] = {}
            for who, token in (tokens | {"limited": limited}).items():
                clients[who] = client = running.client()
                client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": token})
            before = fates(store)
            plan = clients["reader"].get("plan?stream=rides")
            assert "what-if" not in plan.text
            assert clients["reader"].get(ASKED).status == 403
            asked = clients["developer"].get(ASKED)
            assert asked.status == 200
            assert "Applying takes the role operator" in asked.text
            assert "what-if-apply" not in asked.text
            assert "what-if-stream" not in asked.text
            right = hidden(clients["operator"].get(ASKED), "what-if-apply")
            window = hidden(clients["operator"].get("what-if?stream=rides"), "what-if-stream")
            for who in ("reader", "developer"):
                csrf = {"csrf": clients[who].get("overview").csrf}
                assert clients[who].post("what-if-apply", right | csrf).status == 403
                assert clients[who].post("what-if-stream", window | csrf).status == 403
            # A limited operator may apply to their stream, and make none.
            page_of_limited = clients["limited"].get(ASKED)
            assert "what-if-stream" not in page_of_limited.text
            assert (
                clients["limited"]
                .post("what-if-stream", window | {"csrf": page_of_limited.csrf})
                .status
                == 403
            )
            assert fates(store) == before
            assert (
                clients["limited"]
                .post("what-if-apply", hidden(page_of_limited, "what-if-apply"))
                .status
                == 303
            )
            assert clients["operator"].post("what-if-stream", window).status == 303
        assert store.ptk("hour-fast").status == "RETIRED"
        with parts.metadata.read() as tx:
            entries = [
                (one.who, one.what.rpartition("/")[2], one.subject, one.outcome)
                for one in tx.audit.list(limit=1000)
            ]
        assert ("limited", "ApprovePlan", "rides", "ALLOWED") in entries
        assert ("limited", "CreateStream", "", "DENIED") in entries
        assert ("operator", "CreateStream", "rides-12h", "ALLOWED") in entries


def test_nothing_raw_is_shown(running: Running) -> None:
    for path in (ASKED, "what-if?stream=rides", "what-if?stream=rides&epsilon=2"):
        assert CANARY.split("-")[1] not in running.signed_in().get(path).text


@pytest.mark.parametrize(
    "path", [ASKED, "what-if?stream=rides&epsilon=2", "what-if?stream=rides&retarget=x&to=y"]
)
def test_nothing_is_inline_and_every_address_is_relative(running: Running, path: str) -> None:
    text = running.signed_in().get(path).text
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|javascript:", text)
    for address in re.findall(r'(?:href|src|action|hx-get|hx-post)="([^"]*)"', text):
        assert not address.startswith(("/", "http")), address
    assert len(text) < 300_000


def test_an_empty_store_teaches(empty_store: Store) -> None:
    with console(DirectorySource(empty_store, "x")) as running:
        assert "No streams, so nothing to ask about" in words(
            running.signed_in().get("what-if").text
        )


def test_a_quiet_stream_teaches(running: Running) -> None:
    assert "No PTKs on this stream yet" in words(
        running.signed_in().get("what-if?stream=quiet").text
    )


def test_long_work_is_waited_for_a_while_and_found_again(
    changing: tuple[Store, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, running = changing
    go, begun = threading.Event(), []
    original = Question.asked

    def slow(self: Question, *arguments: object) -> Changes:
        begun.append(1)
        assert go.wait(20)
        return original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Question, "asked", slow)
    monkeypatch.setattr(page, "_PATIENCE_SECONDS", 0.05)
    client = running.signed_in()
    for _ in range(2):
        answer = client.get(ASKED)
        assert answer.status == 200
        assert "Still working it out" in answer.text
        assert 'hx-trigger="load delay:1s"' in answer.text
    go.set()
    monkeypatch.setattr(page, "_PATIENCE_SECONDS", 20.0)
    assert "What it would cost" in client.get(ASKED).text
    assert len(begun) == 1


def test_work_that_is_old_is_begun_again() -> None:
    done = []
    work = BackgroundWork(lambda: done.append(1) or len(done), fresh_seconds=0.0)  # type: ignore[func-returns-value]
    assert [work.answer(10), work.answer(10)] == [1, 2]
    kept = BackgroundWork(lambda: done.append(1) or len(done), fresh_seconds=100.0)  # type: ignore[func-returns-value]
    assert [kept.answer(10), kept.answer(10)] == [3, 3]


def test_a_question_comes_back_from_its_address() -> None:
    pairs = [
        ("stream", "s"),
        ("retarget", "a"),
        ("to", "0.1"),
        ("retarget", "b & c"),
        ("to", ""),
        ("drop", "d"),
    ]
    pairs += [
        ("fork", "e"),
        ("name", "f"),
        ("fork_to", "1"),
        ("add", "g"),
        ("kind", ""),
        ("config", "{}"),
        ("add_to", "x"),
    ]
    pairs += [("epsilon", "2"), ("n_max", "5")]
    question = Question.read(pairs)
    assert question.pairs() == pairs
    assert pairs_of(question.address(told="x")) == pairs
    assert Question.read(Question.read([]).pairs()) == Question("")
    assert not Question.read([("kind", "counts"), ("epsilon", "")]).asks


def test_large_plans_stay_small() -> None:
    one, other = plan_of(5000, 2000), plan_of(4000, 2100)
    hues = hues_of(one, other)
    size = sum(
        len(draw(plan, "1", width=NARROW, samples=10**7, name=name, hues=hues))
        for plan, name in ((one, "a"), (other, "b"))
    )
    assert size < 200_000
