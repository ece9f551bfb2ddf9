"""What somebody would try who has a token of little worth, a name to choose, or nothing but a
connection.
"""

from __future__ import annotations

import csv
import http.client
import io
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptkstore import Store
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.console.page.spreadsheet import csv_file
from ptkstore.console.pages import PAGES
from tests.console.running import Client, Running, console
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec

GETS = [one for one in PAGES if one.method == "GET" and one.path != "operations-live"]
POSTS = [one for one in PAGES if one.method == "POST" and one.path not in ("theme", "sign-out")]
# A name that a developer may choose: everything that prints.
NAME = "x\"; filename*=UTF-8''evil.html; <img src=x onerror='alert(1)'> 日本"


def signed_in(remote: Running, token: str) -> Client:
    client = remote.client()
    answer = client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": token})
    assert answer.status == 303
    return client


@pytest.fixture(scope="module")
def badly_named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Store(tmp_path_factory.mktemp("named"), workers=0) as store:
        store.create_stream(spec())
        store.register(NAME, stream="rides", kind="statistics", config=config(), target=0.6)
        store.push("rides", day(0))
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert store.ptk(NAME).latest_version == 1
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named(NAME).id, "=<b>:7000")
            tx.notifications.put(one.id, 1, attempts=9, status="DEAD", reason="<i>", due_ms=0)
        with console(DirectorySource(store, "<u>")) as running:
            yield running


class TestNames:
    @pytest.mark.parametrize("path", [one.path for one in GETS])
    def test_no_name_is_markup_anywhere(self, badly_named: Running, path: str) -> None:
        client = badly_named.signed_in()
        for query in (
            {"stream": "rides"},
            {"stream": "rides", "name": NAME, "version": "1", "find": "<img"},
        ):
            answer = client.get(
                f"{path}?{'&'.join(f'{key}={_quoted(value)}' for key, value in query.items())}"
            )
            assert answer.status < 500
            if any(kind in answer.headers.get("content-type", "") for kind in ("html", "svg")):
                for raw in ("<img src=x", "<b>", "<i>", "<u>", '" onerror'):
                    assert raw not in answer.text

    def test_a_name_does_not_choose_the_file(self, badly_named: Running) -> None:
        client = badly_named.signed_in()
        answer = client.get(f"certificate.json?name={_quoted(NAME)}&version=1")
        assert answer.status == 200
        told = answer.headers["content-disposition"]
        assert (told.count('"'), told.count(";")) == (2, 1)
        assert told.endswith('-v1-certificate.json"')


class TestSpreadsheets:
    @pytest.mark.parametrize(
        "text",
        [
            "=1+1",
            "+1+1",
            "-1+1",
            "@SUM(1)",
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "＝1+1",
            "＠SUM(1)",
            "-1\n=1",
        ],
    )
    def test_what_looks_like_a_formula_is_a_text(self, text: str) -> None:
        (_, (cell,)) = csv.reader(io.StringIO(_csv(text), newline=""))
        assert cell == "'" + text

    @pytest.mark.parametrize("separator", [";", "\t", ",", "|"])
    def test_no_separator_lets_a_second_cell_begin(self, separator: str) -> None:
        """Whichever a spreadsheet takes for one in its country."""
        hostile = f"innocent{separator}=HYPERLINK(1)"
        for row in csv.reader(io.StringIO(_csv(hostile), newline=""), delimiter=separator):
            assert not [cell for cell in row if cell.startswith("=")]

    def test_numbers_stay_numbers(self) -> None:
        for number in ("-1", "-0.5", "1e-06", "-2.5E+3"):
            assert _csv(number).splitlines()[1] == f'"{number}"'


class TestDoors:
    @pytest.mark.parametrize(
        "token", ["a\nb", "é", "\x00", "a\x7fb", "a b", "x" * 5000, "sage_\r\nx: y"]
    )
    def test_what_cannot_be_a_token_is_a_wrong_one(self, remote: Running, token: str) -> None:
        client = remote.client()
        answer = client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": token})
        assert answer.status == 401
        assert "CREDENTIALS_INVALID" in answer.text
        assert "sage_session" not in client.cookies

    def test_a_visitor_cannot_choose_whom_the_proxy_saw(self, empty_store: Store) -> None:
        """Some proxies add a line of their own after that of the visitor."""
        with console(
            DirectorySource(empty_store, "x"), sign_ins_per_second=1.0, trust_proxy=True
        ) as running:
            found = set()
            for number in range(8):
                connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
                connection.putrequest("GET", "/open?key=x")
                for told in (f"10.9.9.{number}", "10.0.0.1"):
                    connection.putheader("X-Forwarded-For", told)
                connection.endheaders()
                found.add(connection.getresponse().status)
                connection.close()
        assert found == {403, 429}

    def test_a_session_is_never_the_one_that_somebody_brought(
        self, remote: Running, tokens: dict[str, str]
    ) -> None:
        client = remote.client()
        client.cookies["sage_session"] = "chosen-by-somebody-else"
        client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": tokens["reader"]})
        first = client.cookies["sage_session"]
        assert first != "chosen-by-somebody-else"
        client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": tokens["developer"]})
        client.cookies["sage_session"] = first
        assert client.get("overview").headers["location"] == "sign-in?over=1", (
            "the session before has ended"
        )

    def test_a_stream_of_events_keeps_no_session_alive(self, tmp_path: Path) -> None:
        with Store(tmp_path, workers=0) as store:
            store.create_stream(spec())
            with console(DirectorySource(store, "x"), idle_seconds=0.6) as running:
                client = running.signed_in()
                deadline = time.monotonic() + 10
                while (
                    _status(client, "operations-live?stream=rides", accept="text/event-stream")
                    == 200
                ):
                    assert time.monotonic() < deadline
                    time.sleep(0.05)


class TestAddresses:
    @pytest.mark.parametrize(
        "path",
        ["/overview/", "/sign-in/", "/sign-in%2f", "//evil.example/", "//evil.example/sign-in/"],
    )
    def test_nobody_is_sent_elsewhere(self, running: Running, path: str) -> None:
        told = _raw(
            running.port, f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        )
        assert told.startswith("HTTP/1.1 404")
        assert "evil.example" not in told

    def test_a_prefix_without_its_slash_gets_one(self, empty_store: Store) -> None:
        with console(DirectorySource(empty_store, "x"), root_path="/deep/sage") as running:
            answer = running.client().get("deep/sage")
            assert (answer.status, answer.headers["location"]) == (303, "sage/")
            assert running.client().get("deep/sage/").headers["location"] == "sign-in"
        with console(DirectorySource(empty_store, "x"), trust_proxy=True) as running:
            for prefix in ("//evil.example", "/javascript:x", "/\\evil.example", "/a b"):
                assert (
                    running.client(x_forwarded_prefix=prefix)
                    .get(prefix[1:].replace(" ", "%20"))
                    .status
                    == 404
                )

    def test_only_the_address_that_a_page_names_is_kept_for_long(self, embedded: Running) -> None:
        client = embedded.client()
        for query in ("?v=000000000000", "?v=", "?x&v=1", ""):
            assert client.get(f"static/console.js{query}").headers["cache-control"] == "no-cache"


class TestRoles:
    """The console asks first, the server has the last word: what is told here is what both together
    do.
    """

    @pytest.mark.parametrize("who", ["reader", "developer"])
    def test_who_may_not_see_a_page_does_not(
        self, remote: Running, tokens: dict[str, str], who: str
    ) -> None:
        client = signed_in(remote, tokens[who])
        for one in GETS:
            status = client.get(_address(one.path)).status
            allowed = one.role == "reader" or one.role == who
            assert (status == 403) != allowed, (one.path, status)
            assert not allowed or status == 200, (one.path, status)

    @pytest.mark.parametrize("who", ["reader", "developer"])
    def test_who_may_not_act_does_not(
        self, remote: Running, served: tuple[Store, str], tokens: dict[str, str], who: str
    ) -> None:
        client = signed_in(remote, tokens[who])
        secret = client.get("overview").csrf
        with served[0].parts.metadata.read() as tx:
            before = tx.events.newest()
        for one in POSTS:
            if one.role != who:
                answer = client.post(
                    one.path,
                    {"csrf": secret, "stream": "rides", "name": "hour-speed", "delivery": "1"},
                )
                assert answer.status == 403, one.path
                assert "PERMISSION_DENIED" in answer.text
        with served[0].parts.metadata.read() as tx:
            assert tx.events.newest() == before

    def test_a_limited_token_sees_and_does_nothing_elsewhere(
        self, remote: Running, tokens: dict[str, str]
    ) -> None:
        """An operator of one stream, at the other one."""
        client = signed_in(remote, tokens["limited"])
        secret = client.get("overview").csrf
        for one in GETS:
            answer = client.get(_address(one.path))
            assert "hour-counts" not in answer.text, one.path
            assert answer.status == 403 or "hour-speed" not in answer.text, one.path
        for one in POSTS:
            fields = {
                "csrf": secret,
                "stream": "rides",
                "name": "hour-speed",
                "delivery": "1",
                "token": "x" * 40,
            }
            answer = client.post(one.path, fields | {"question": "stream=rides", "window": "3600"})
            assert answer.status in (400, 403), one.path
        assert _status(client, "operations-live?stream=rides", accept="text/event-stream") == 403

    def test_the_server_is_asked_whatever_the_session_says(
        self, served: tuple[Store, str], tokens: dict[str, str]
    ) -> None:
        """As if the console took a reader for an operator."""
        pages = tuple(type(one)(**{**vars(one), "role": "reader"}) for one in PAGES)
        with console(ServerSource(served[1]), pages=pages) as running:
            client = signed_in(running, tokens["reader"])
            secret = client.get("overview").csrf
            for one in PAGES:
                if one.role == "reader" or one.path == "doctor":
                    continue  # the page of the doctor asks nothing
                more = {"question": "stream=rides", "window": "172800"}
                fields = {
                    "csrf": secret,
                    "stream": "rides",
                    "name": "hour-speed",
                    "delivery": "1",
                    "token": "x" * 40,
                }
                answer = (
                    client.get(_address(one.path))
                    if one.method == "GET"
                    else client.post(one.path, fields | more)
                )
                assert answer.status in (400, 403), (one.path, answer.status)


def _address(path: str) -> str:
    """Where a page shows something of the stream of rides, and takes the rights to see it."""
    query = {
        "ptk": "name=hour-speed",
        "certificate.json": "name=hour-speed&version=1",
        "what-if": "stream=rides&drop=hour-fast",
    }
    return f"{path}?{query.get(path, 'stream=rides')}"


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def _csv(text: str) -> str:
    return bytes(csv_file("t", ("a",), [(text,)]).body).decode()


def _raw(port: int, request: str) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def _status(client: Client, path: str, **headers: str) -> int:
    """The status of an answer that need not end."""
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    connection.request("GET", "/" + path, headers={"cookie": cookies, **headers})
    try:
        return connection.getresponse().status
    finally:
        connection.close()
