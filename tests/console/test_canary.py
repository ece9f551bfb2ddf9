"""Nothing raw leaves: every page, action, file, stream of events and RPC, searched for planted
values and for exact counts.

Canaries are texts and a number that records of a stream carry. The raw numbers of records (of each
push, block, window and of all) are searched for as well. A DP count may hit the raw one by chance,
so that the noise on counts is wide here: with epsilon 1/2,000 the probability is 1/4,000 for each
of seven counts, less than 0.2% in all.
"""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.json_format import MessageToJson
from google.protobuf.message_factory import GetMessageClass
from starlette.responses import Response

from ptklib.errors import Refused
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.console.page.page import Page
from ptkstore.console.pages import PAGES
from ptkstore.engine.access.tokens import make_token
from ptkstore.server import Server
from tests.console.crawling import Seen, act, crawl
from tests.console.running import Running, console
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, spec
from tests.rpc.calling import RPCS, SERVED, Clients
from tests.rpc.permission_results import request_for
from tests.rpc.small import PACE, channel_to, settings_of

VALUE = 123457.0
# Of each block, two of which are a window; the last is held and not sealed. None is the number of a
# window (about 20,450) or of an entry in a log (a few thousand).
BLOCKS = (23_477, 17_393, 19_381, 18_269, 15_787)
LATE = 11_903
COUNTS = (
    *BLOCKS,
    LATE,
    BLOCKS[0] + BLOCKS[1],
    BLOCKS[2] + BLOCKS[3],
    sum(BLOCKS),
    sum(BLOCKS) + LATE,
)
_NUMBERS = re.compile(
    r"(?<![\w.-])("
    + "|".join(f"{one:,}|{one}" for one in COUNTS)
    + r"|123,?457)(\.0+)?(?![\w-]|[.,]\d)"
)
GETS = [one.path for one in PAGES if one.method == "GET"]


def found_in(text: str) -> list[str]:
    """The canaries and raw numbers in a text."""
    return [one for one in (CANARY,) if one in text] + [one[0] for one in _NUMBERS.findall(text)]


def found_in_bytes(data: bytes) -> list[str]:
    """The same in what is no text: names as they are, the number as a float."""
    needles = {
        CANARY: CANARY.encode(),
        "the value": struct.pack("<d", VALUE),
        "the value, small": struct.pack("<f", VALUE),
    }
    return [name for name, needle in needles.items() if needle in data]


def rides(block: int, rows: int) -> pa.Table:
    """Records of one block.

    Each has a canary for a driver, and one in ten has the number for a fare.
    """
    rng = np.random.default_rng(block)
    at = np.sort(rng.integers(0, DAY_MS // 2, rows)) + FIRST_MS + block * (DAY_MS // 2)
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("ms")),
            "hour": (at // 3_600_000 % 24).astype(np.int32),
            "speed": np.clip(rng.normal(25, 5, rows), 0, 60),
            "driver": [f"{CANARY}-{k}" for k in range(rows)],
            "fare": np.where(np.arange(rows) % 10 == 0, VALUE, rng.uniform(0, 90_000, rows)),
        }
    )


def fill(store: Store) -> None:
    """Two windows that ran, records that came late, and half a day that is held."""
    columns = (*spec().columns, Column(name="fare", type="float64", lower=0, upper=200_000))
    store.create_stream(
        spec(columns=columns, count_epsilon="0.0005", n_max=60_000, out_of_bounds="refuse")
    )
    store.create_stream(spec(name="other"))
    fares = config() | {"value": "fare", "lower": 0.0, "upper": 200_000.0}
    for name, asked, target in (
        ("hour-speed", config(), 0.2),
        ("fares", fares, 0.2),
        ("old-0", config("count"), 0.9),
        ("too-sharp", config(), 0.0001),
    ):
        store.register(name, stream="rides", kind="statistics", config=asked, target=target)
    for block in (0, 1):
        store.push("rides", rides(block, BLOCKS[block]))
    store.run("rides", until_ms=FIRST_MS + DAY_MS)
    store.push("rides", rides(0, LATE))
    for block in (2, 3, 4):
        store.push("rides", rides(block, BLOCKS[block]))
    store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    # What is refused must not be quoted either.
    wrong = rides(4, 10).set_column(4, "fare", pa.array([VALUE + 200_000] * 10))
    with pytest.raises(Refused) as refusal:
        store.push("rides", wrong)
    assert not found_in(str(refusal.value) + str(refusal.value.details))


@contextmanager
def planted(path: Path) -> Iterator[Clients]:
    """A server over such a store, with something for every RPC to be about."""
    limits: dict[str, Any] = {
        "subscribers": {"allowed": ["127.0.0.1:*"]},
        "auth": {"required": True},
    }
    behind = time.time() - (FIRST_MS + 3 * DAY_MS) / 1000
    with (
        # A clock that is little ahead of the records, so that running windows "now" runs few of
        # them.
        Store(path, workers=0, clock=lambda: time.time() - behind) as store,
        Server(store, settings_of(**limits), pace=PACE) as server,
        channel_to(server) as channel,
    ):
        fill(store)
        store.register("foreign", stream="other", kind="statistics", config=config(), target=0.3)
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named("hour-speed").id, "127.0.0.1:20")
            tx.notifications.set_mark(one.id, 2)
            tx.notifications.put(
                one.id, 1, attempts=4, status="DEAD", reason="UNAVAILABLE", due_ms=0
            )
            tx.operations.end(tx.operations.start("CloseWindow", "rides").id, "DONE")
        yield Clients(server, store, channel)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with planted(tmp_path_factory.mktemp("canaries")) as found:
        yield found


@pytest.fixture(scope="module")
def watched(clients: Clients) -> Iterator[Running]:
    with console(
        ServerSource(clients.server.address, token=clients.token("ann", "operator"))
    ) as running:
        yield running


def answers(clients: Clients, token: str) -> Iterator[tuple[str, str, bytes]]:
    """Every RPC with its (first) answer, as text and as bytes."""
    for method in SERVED:
        request = request_for(clients, method.rpartition("/")[2], 0, token)
        told, data = clients.answer(method, token, request)
        message = GetMessageClass(RPCS[method].output_type).FromString(data)
        yield method, told + MessageToJson(message), data


def leaks(seen: Iterator[Seen]) -> list[str]:
    return [f"{one.where}: {found}" for one in seen if (found := found_in(one.text))]


def test_no_page_action_file_or_stream_tells(
    watched: Running, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    client = watched.signed_in()
    pages = list(crawl(client, GETS))
    where = {one.where.partition("?")[0] for one in pages}
    assert where >= set(GETS)
    assert {
        "operations-live",
        "plan.csv",
        "plan.svg",
        "plan.png",
        "audit.csv",
        "events.csv",
    } <= where
    assert any(
        "stream=rides" in one.where for one in pages if one.where.startswith("operations-live")
    )
    assert leaks(iter(pages)) == []
    done = list(act(client, pages))
    assert {"POST run-windows", "POST retry-delivery", "POST examine", "POST theme"} <= {
        one.where for one in done
    }
    # Of wrong forms too, and of the way back to a page of an error.
    assert {one.status for one in (*pages, *done)} <= {200, 303, 400, 404, 409}
    assert leaks(iter(done)) == []
    # What the actions did is on the pages now.
    assert leaks(crawl(client, GETS)) == []
    logs = caplog.text + "".join(capfd.readouterr())
    assert "refused" in logs
    assert found_in(logs) == []


def test_no_rpc_tells(clients: Clients) -> None:
    token = clients.token("bea", "operator")
    states = 0
    for method, text, data in answers(clients, token):
        assert found_in(text) == [], method
        assert found_in_bytes(data) == [], method
        states += "GetState" in method and len(data) > 100
    assert states == 1


def test_the_same_store_in_a_directory(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        fill(store)
        with console(DirectorySource(store, "x")) as running:
            assert leaks(crawl(running.signed_in(), GETS)) == []
        assert {one.level for one in store.doctor([CANARY]) if one.what == "canaries"} == {"OK"}


@pytest.mark.parametrize(
    "leak",
    [
        f"driver {CANARY}-7",
        "23477 records",
        "23,477 records",
        f"fares of {VALUE}",
        "123,457",
        "(11,903 late)",
        f"{sum(BLOCKS):,}",
    ],
)
def test_the_search_finds_what_a_page_leaks(watched: Running, clients: Clients, leak: str) -> None:
    leaky = Page(
        path="leaky", view=lambda _visit: Response(f"<p>{leak}</p>", media_type="text/html")
    )
    parts = clients.store.parts
    token = make_token(
        parts.metadata, f"leak {abs(hash(leak))}", roles=["reader"], now_ms=parts.now_ms()
    )[0]
    with console(
        ServerSource(clients.server.address, token=token), pages=(*PAGES, leaky)
    ) as running:
        assert len(leaks(crawl(running.signed_in(), ["leaky"]))) == 1


def test_the_search_finds_what_an_rpc_leaks(tmp_path: Path) -> None:
    with planted(tmp_path) as clients:
        with clients.store.parts.journal.writing() as tx:
            tx.events.add(
                "ptk.state", "hour-speed", {"note": f"trained with {CANARY}-3", "rows": BLOCKS[0]}
            )
        found = [
            method
            for method, text, _ in answers(clients, clients.token("cis", "operator"))
            if found_in(text)
        ]
        assert {one.rpartition("/")[2] for one in found} >= {"ListEvents"}


def test_numbers_that_only_look_like_it_are_not_found() -> None:
    for text in (
        "234770",
        "1.23477",
        "a23477",
        "23477e",
        "x-23477-y",
        "23,4771",
        "23,477.5",
        "1,323,477",
        json.dumps("f23477"),
    ):
        assert found_in(text) == [], text
    assert found_in_bytes(struct.pack("<d", VALUE)) == ["the value"]
