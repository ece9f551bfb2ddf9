"""A console on a free port of loopback, and a client that keeps cookies as a browser does."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from ptkstore.console import ConsoleSettings, Source, make_app
from ptkstore.console.page.page import Page
from ptkstore.console.pages import PAGES
from ptkstore.console.serving import Serving, bound
from ptkstore.console.sessions.sessions import OneTimeKeys

__all__ = ["Answer", "Client", "Running", "console"]


@dataclass(frozen=True)
class Running:
    """A console that runs. ``used`` counts its one-time links that were used."""

    port: int
    keys: OneTimeKeys
    used: list[int]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def one_time_link(self) -> str:
        return f"open?key={self.keys.make()}"

    def client(self, **headers: str) -> Client:
        return Client(self.port, headers=headers)

    def signed_in(self, **headers: str) -> Client:
        """A client that came by the link."""
        found = self.client(**headers)
        assert found.get(self.one_time_link()).status == 303
        return found


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str
    data: bytes
    cookies: Sequence[str]

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.text)
        assert found is not None
        return found[1]


@dataclass
class Client:
    """Cookies without a path belong to the folder of the page that set them, which here is always
    the same.
    """

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        kind = {"content_type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urlencode(fields), kind | headers)

    def follow(self, path: str) -> Answer:
        """Through redirects, to the page in the end."""
        for _ in range(5):
            answer = self.get(path)
            if answer.status != 303:
                return answer
            path = urlsplit(
                urljoin("http://x/" + path, answer.headers["location"])
            ).path.removeprefix("/")
        raise AssertionError("it redirects for ever")

    def _ask(self, method: str, path: str, body: str | None, more: Mapping[str, str]) -> Answer:
        headers = {
            name.replace("_", "-"): value for name, value in (self.headers | dict(more)).items()
        }
        if self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, "/" + path, body=body, headers=headers)
            found = connection.getresponse()
            data = found.read()
            cookies = found.headers.get_all("set-cookie") or []
        finally:
            connection.close()
        for one in cookies:
            name, _, value = one.partition(";")[0].partition("=")
            if "max-age=0" in one.lower():
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        # Of a picture there is no text, but what is searched for is searched for there too.
        text = data.decode(
            errors="strict"
            if "image/png" not in found.headers.get("content-type", "")
            else "replace"
        )
        return Answer(
            found.status,
            {name.lower(): value for name, value in found.headers.items()},
            text,
            data,
            cookies,
        )


@contextmanager
def console(source: Source, *, pages: Sequence[Page] = PAGES, **settings: Any) -> Iterator[Running]:
    keys, used = OneTimeKeys(), list[int]()
    fitting = ConsoleSettings(**{"sign_ins_per_second": 0.0, **settings})
    app = make_app(source, fitting, keys=keys, key_used=lambda: used.append(1), pages=pages)
    serving = Serving(app, bound("127.0.0.1", 0))
    thread = threading.Thread(target=serving.run, name="console")
    thread.start()
    try:
        yield Running(serving.port, keys, used)
    finally:
        serving.stop()
        thread.join(20)
        assert not thread.is_alive()
