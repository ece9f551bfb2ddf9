"""Who gets in, for how long, and what nobody can make a browser do."""

from __future__ import annotations

import re
import time

import pytest
from starlette.responses import Response

from ptklib.errors import InvalidInput
from ptkstore import Store
from ptkstore.api.store import Store as AnyStore
from ptkstore.console import ConsoleSettings, DirectorySource, ServerSource
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.pages import PAGES
from ptkstore.console.security.security_headers import CONTENT_POLICY
from ptkstore.console.sessions.sessions import Sessions
from ptkstore.console.sessions.settings import require_protection
from ptkstore.engine.access.tokens import make_token
from ptkstore.rpc.gate.identity import TOKEN_SECONDS
from tests.console.running import Running, console

GETS = [one.path for one in PAGES if one.method == "GET"]
POSTS = [one.path for one in PAGES if one.method == "POST"]


@pytest.mark.parametrize("path", [*GETS, *POSTS])
def test_strangers_see_nothing(running: Running, path: str) -> None:
    client = running.client()
    answer = client.get(path) if path in GETS else client.post(path, {})
    assert (answer.status, answer.headers["location"], answer.text) == (303, "sign-in", "")
    client.cookies["sage_session"] = "x" * 43
    assert client.get("overview").headers["location"] == "sign-in?over=1"
    assert client.get("overview", hx_request="true").headers["hx-redirect"] == "sign-in?over=1"


def test_a_link_opens_the_console_once(running: Running) -> None:
    link, before = running.one_time_link(), len(running.used)
    first = running.client()
    answer = first.get(link)
    assert (answer.status, answer.headers["location"]) == (303, "overview")
    assert first.get("overview").status == 200
    assert len(running.used) == before + 1
    for wrong in (link, "open?key=", "open", "open?key=%C3%A9"):
        answer = running.client().get(wrong)
        assert answer.status == 403
        assert "LINK_USED" in answer.text
        assert answer.cookies == []


def test_the_session_cookie_is_strict(running: Running) -> None:
    (cookie,) = running.client().get(running.one_time_link()).cookies
    parts = {one.strip().lower() for one in cookie.split(";")[1:]}
    # No path: it is the folder that the browser sees, whatever a proxy calls it.
    assert parts == {"httponly", "samesite=strict"}
    assert len(cookie.split(";")[0].partition("=")[2]) == 43


def test_a_token_signs_in(remote: Running, tokens: dict[str, str]) -> None:
    for who in ("reader", "developer", "operator", "limited"):
        client = remote.client()
        form = client.get("sign-in")
        answer = client.post("sign-in", {"csrf": form.csrf, "token": f" {tokens[who]} "})
        assert (answer.status, answer.headers["location"]) == (303, "overview")
        page = client.get("overview").text
        assert who in page
        # What a limited token may not see is not there.
        assert ("rides" in page, "quiet" in page) == (who != "limited", True)
        assert tokens[who] not in page + answer.text + str(answer.cookies)


@pytest.mark.parametrize(
    ("token", "status", "reason"),
    [
        ("", 401, "CREDENTIALS_MISSING"),
        ("sage_000000000000_" + "x" * 43, 401, "CREDENTIALS_INVALID"),
        ("nonsense", 401, "CREDENTIALS_INVALID"),
    ],
)
def test_a_wrong_token_does_not(remote: Running, token: str, status: int, reason: str) -> None:
    client = remote.client()
    answer = client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": token})
    assert answer.status == status
    assert reason in answer.text
    assert "sage_session" not in client.cookies
    assert not token or token not in answer.text


def test_a_producer_has_nothing_to_see(remote: Running, tokens: dict[str, str]) -> None:
    client = remote.client()
    answer = client.post(
        "sign-in", {"csrf": client.get("sign-in").csrf, "token": tokens["producer"]}
    )
    assert answer.status == 403
    assert "PERMISSION_DENIED" in answer.text


def test_a_directory_takes_no_tokens(embedded: Running) -> None:
    client = embedded.client()
    form = client.get("sign-in")
    assert 'name="token"' not in form.text
    assert "sage ui" in form.text
    assert client.post("sign-in", {"csrf": "x", "token": "y"}).status == 403


def test_signing_in_cannot_be_forged(remote: Running, tokens: dict[str, str]) -> None:
    client = remote.client()
    form = client.get("sign-in")
    right = {"csrf": form.csrf, "token": tokens["reader"]}
    for fields, headers in (
        (right | {"csrf": ""}, {}),
        (right | {"csrf": remote.client().get("sign-in").csrf}, {}),
        (right, {"origin": "http://evil.example"}),
        (right, {"origin": "null"}),
        (right, {"sec_fetch_site": "cross-site"}),
        (right, {"sec_fetch_site": "same-site"}),
    ):
        answer = client.post("sign-in", fields, **headers)
        assert answer.status == 403
        assert "FORM_FORGED" in answer.text
    assert client.post("sign-in", right, origin=remote.url.rstrip("/")).status == 303


def test_too_many_tries_have_to_wait(empty_store: Store) -> None:
    with console(DirectorySource(empty_store, "x"), sign_ins_per_second=1.0) as running:
        answers = [running.client().get("open?key=x").status for _ in range(8)]
    assert set(answers) == {403, 429}


def test_behind_a_proxy_each_visitor_has_tries_of_their_own(empty_store: Store) -> None:
    with console(
        DirectorySource(empty_store, "x"), sign_ins_per_second=1.0, trust_proxy=True
    ) as running:

        def tried(address: str) -> int:
            return running.client(x_forwarded_for=address).get("open?key=x").status

        # What the visitor says of itself comes first, what the proxy saw comes last.
        assert {tried(f"10.9.9.{k}, 10.0.0.1") for k in range(8)} == {403, 429}
        assert tried("10.0.0.1, 10.0.0.2") == 403


@pytest.mark.parametrize("path", POSTS)
def test_no_action_without_the_secret_of_the_session(running: Running, path: str) -> None:
    client, other = running.signed_in(), running.signed_in()
    mine, theirs = client.get("overview").csrf, other.get("overview").csrf
    assert mine != theirs
    for fields, headers in (
        ({}, {}),
        ({"csrf": theirs}, {}),
        ({"csrf": mine}, {"origin": "https://evil.example"}),
        ({"csrf": mine}, {"sec_fetch_site": "cross-site"}),
        ({}, {"x_csrf": theirs}),
    ):
        answer = client.post(path, fields, **headers)
        assert answer.status == 403
        assert "FORM_FORGED" in answer.text
        assert client.get("overview").status == 200
    assert client.get(path).status == 404
    # With it, the action itself decides: most miss a field here.
    answer = client.post(path, {"csrf": mine})
    assert answer.status in (303, 400, 404)
    assert "FORM_FORGED" not in answer.text


def test_the_secret_may_come_in_a_header(embedded: Running) -> None:
    client = embedded.signed_in()
    secret = client.get("overview").csrf
    assert client.post("theme", {"theme": "dark"}, x_csrf=secret).status == 303
    assert 'data-theme="dark"' in client.get("overview").text


def test_a_form_must_be_one(embedded: Running) -> None:
    client = embedded.signed_in()
    secret = client.get("overview").csrf
    for fields, headers in (
        ({"csrf": secret, "x": "y" * (1 << 19)}, {}),
        ({"csrf": secret}, {"content_type": "text/plain"}),
    ):
        answer = client.post("theme", fields, **headers)
        assert answer.status == 400
        assert "FORM_INVALID" in answer.text


def test_a_theme_goes_back_to_a_page_of_ours_only(embedded: Running) -> None:
    client = embedded.signed_in()
    secret = client.get("overview").csrf
    for back, there in (
        ("plan?stream=rides&page=2", "plan?stream=rides&page=2"),
        ("//evil.example", "overview"),
        ("https://evil.example", "overview"),
        ("/plan", "overview"),
        ("plan\r\nx: y", "overview"),
        ("", "overview"),
    ):
        answer = client.post("theme", {"csrf": secret, "theme": "light", "back": back})
        assert answer.headers["location"] == there
    assert client.post("theme", {"csrf": secret, "theme": "<b>"}).cookies == []


def test_signing_out_ends_the_session_here_and_there(running: Running) -> None:
    client = running.signed_in()
    page = client.get("overview")
    kept = dict(client.cookies)
    assert client.post("sign-out", {"csrf": page.csrf}).headers["location"] == "sign-in"
    assert "sage_session" not in client.cookies
    client.cookies = kept
    assert client.get("overview").headers["location"] == "sign-in?over=1"


def test_a_session_ends_when_nobody_is_there(empty_store: Store) -> None:
    with console(DirectorySource(empty_store, "x"), idle_seconds=0.6) as running:
        client = running.signed_in()
        assert client.get("overview").status == 200
        # A page that renews itself is nobody.
        deadline = time.monotonic() + 10
        while client.get("overview", x_background="1").status == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert client.get("overview").headers["location"] == "sign-in?over=1"
        assert "Your session is over" in client.get("sign-in?over=1").text


def test_sessions_end_by_the_clock(empty_store: Store) -> None:
    now, over = [0.0], list[AnyStore]()
    limits = ConsoleSettings(idle_seconds=10, longest_seconds=100, most_sessions=2)
    sessions = Sessions(limits, over.append, lambda: now[0])
    first = sessions.begin(empty_store, empty_store.caller())
    now[0] = 9.9
    assert sessions.find(first.id) is first
    assert sessions.find(first.id, touch=False) is first
    now[0] = 19.8
    assert sessions.find(first.id, touch=False) is first
    now[0] = 19.95
    assert sessions.find(first.id) is None
    assert over == [empty_store]
    busy = sessions.begin(empty_store, empty_store.caller())
    began = now[0]
    while now[0] < began + 99:
        assert sessions.find(busy.id) is busy
        now[0] += 9
    now[0] = began + 100
    assert sessions.find(busy.id) is None
    some = [sessions.begin(empty_store, empty_store.caller()) for _ in range(3)]
    assert [sessions.find(one.id) is not None for one in some] == [False, True, True]
    sessions.end_all()
    assert len(over) == 5


def test_a_token_that_is_revoked_ends_the_session(served: tuple[Store, str]) -> None:
    parts = served[0].parts
    token, row = make_token(parts.metadata, "shortlived", roles=["reader"], now_ms=parts.now_ms())
    with console(ServerSource(served[1])) as running:
        client = running.client()
        client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": token})
        assert client.get("plan?stream=rides").status == 200
        with parts.metadata.write() as tx:
            tx.tokens.revoke(row.name, at_ms=parts.now_ms())
        deadline = time.monotonic() + 3 * TOKEN_SECONDS + 10
        while (answer := client.get("plan?stream=rides")).status == 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert (answer.status, answer.headers["location"]) == (303, "sign-in?over=1")


def test_roles_decide_what_is_offered_and_done(
    served: tuple[Store, str], tokens: dict[str, str]
) -> None:
    done = []

    def act(visit: Visit) -> Response:
        done.append(visit.session.caller.name)
        return visit.go("overview")

    pages = (
        *PAGES,
        Page(
            path="secret", view=lambda _visit: Response("secret"), label="Secret", role="operator"
        ),
        Page(path="act", view=act, role="operator", method="POST"),
    )
    with console(ServerSource(served[1]), pages=pages) as running:
        for who, may in (
            ("reader", False),
            ("developer", False),
            ("operator", True),
            ("limited", True),
        ):
            client = running.client()
            client.post("sign-in", {"csrf": client.get("sign-in").csrf, "token": tokens[who]})
            page = client.get("overview")
            assert ('href="secret"' in page.text) == may
            assert client.get("secret").status == (200 if may else 403)
            assert client.post("act", {"csrf": page.csrf}).status == (303 if may else 403)
    assert done == ["operator", "limited"]


@pytest.mark.parametrize(
    "path", ["sign-in", "overview", "plan", "nowhere", "static/console.css", "open?key=x"]
)
def test_every_answer_has_the_headers(running: Running, path: str) -> None:
    answer = running.signed_in().get(path)
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "server" not in answer.headers
    assert answer.headers["cache-control"] == (
        "no-cache" if path.startswith("static") else "no-store"
    )


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    assert "unsafe" not in CONTENT_POLICY
    assert "*" not in CONTENT_POLICY
    assert "http" not in CONTENT_POLICY
    assert "default-src 'none'" in CONTENT_POLICY


@pytest.mark.parametrize(
    "path",
    [
        "sign-in",
        "nowhere",
        "plan?stream=rides",
        "plan?stream=quiet",
        "operations?stream=rides",
        *(one for one in GETS if "." not in one and "-" not in one),
    ],
)
def test_pages_have_nothing_inline_and_no_absolute_address(running: Running, path: str) -> None:
    text = running.signed_in().get(path).text
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|javascript:", text)
    for address in re.findall(r'(?:href|src|action|hx-get|hx-post)="([^"]*)"', text):
        assert not address.startswith(("/", "http")), address


def test_static_files_are_kept_by_their_digest(embedded: Running) -> None:
    client = embedded.client()
    style = re.search(r'href="(static/console\.css\?v=[0-9a-f]+)"', client.get("sign-in").text)
    assert style is not None
    assert "immutable" in client.get(style[1]).headers["cache-control"]
    assert client.get("static/../app.py").status == 404
    assert client.get("static/%2e%2e/app.py").status == 404
    assert client.get("static/").status == 404


def test_only_known_names_are_answered(empty_store: Store) -> None:
    with console(
        DirectorySource(empty_store, "x"), hosts=("localhost", "127.0.0.1", "[::1]")
    ) as running:
        assert running.client().get("sign-in").status == 200
        assert running.client(host=f"localhost:{running.port}").get("sign-in").status == 200
        assert running.client(host="LOCALHOST").get("sign-in").status == 200
        for host in ("evil.example", f"evil.example:{running.port}", "localhost.evil.example", ""):
            answer = running.client(host=host).get("sign-in")
            assert answer.status == 421
            assert "HOST_UNKNOWN" in answer.text


def test_a_proxy_is_believed_only_when_it_is_trusted(empty_store: Store) -> None:
    source = DirectorySource(empty_store, "x")
    told = {
        "x_forwarded_proto": "https",
        "x_forwarded_host": "sage.example",
        "x_forwarded_prefix": "/deep/sage/",
    }
    with console(source) as running:
        answer = running.client(**told).get(running.one_time_link())
        assert answer.status == 303
        assert "secure" not in answer.cookies[0].lower()
        assert "strict-transport-security" not in answer.headers
        assert running.client(**told).get("deep/sage/sign-in").status == 404
    with console(source, trust_proxy=True) as running:
        client = running.client(**told)
        answer = client.get(running.one_time_link())
        assert "secure" in answer.cookies[0].lower()
        assert "strict-transport-security" in answer.headers
        # Whether the proxy takes the prefix away or not.
        for path in ("overview", "deep/sage/overview"):
            page = client.get(path)
            assert page.status == 200
            assert (
                client.post("theme", {"csrf": page.csrf}, origin="https://sage.example").status
                == 303
            )
            assert (
                client.post("theme", {"csrf": page.csrf}, origin=running.url.rstrip("/")).status
                == 403
            )


def test_a_prefix_that_is_left_in_the_path(empty_store: Store) -> None:
    with console(DirectorySource(empty_store, "x"), root_path="/sage") as running:
        client = running.client()
        assert client.get("sage/" + running.one_time_link()).headers["location"] == "overview"
        assert client.get("sage/overview").status == 200
        assert client.get("sage/static/console.css").status == 200
        assert client.get("sagexoverview").status == 404
    for wrong in ("sage", "/sage/", "//x", "/a b"):
        with pytest.raises(InvalidInput, match="VALUE_INVALID"):
            ConsoleSettings(root_path=wrong)


@pytest.mark.parametrize(
    ("host", "directory", "behind_proxy", "fine"),
    [
        ("127.0.0.1", True, False, True),
        ("localhost", False, False, True),
        ("[::1]", True, False, True),
        ("0.0.0.0", True, True, False),
        ("0.0.0.0", False, False, False),
        ("sage.example", False, False, False),
        ("0.0.0.0", False, True, True),
    ],
)
def test_who_could_reach_it_decides_what_it_takes(
    host: str, directory: bool, behind_proxy: bool, fine: bool
) -> None:
    if fine:
        require_protection(host, directory=directory, behind_proxy=behind_proxy)
        return
    with pytest.raises(InvalidInput, match="CONSOLE_UNPROTECTED"):
        require_protection(host, directory=directory, behind_proxy=behind_proxy)


def test_who_sees_some_ptks_counts_only_those(served: tuple[Store, str]) -> None:
    parts = served[0].parts
    mine = ("hour-speed", "too-sharp")
    token, _ = make_token(parts.metadata, "few", roles=["reader"], now_ms=parts.now_ms(), ptks=mine)
    with Store(served[1], token=token) as few:
        assert few.count_ptks() == {"ACTIVE": 1, "REJECTED": 1}
        assert (few.caller().name, few.caller().roles, few.caller().ptks) == (
            "few",
            ("reader",),
            mine,
        )
