"""Everything that a visitor of the console can get at: every link, every form, every file, every
stream of events.

`crawl` follows links from some pages on; `act` sends every form once as it stands and once empty.
Lists have endless addresses (sorted, searched, turned), so that each path is asked for so many
times at most.
"""

from __future__ import annotations

import html
import http.client
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.console.running import Answer, Client

__all__ = ["Seen", "act", "crawl", "listen"]

_MOST_OF_A_PATH = 12
_LINK = re.compile(r'(?:href|hx-get|data-events)="([^"]*)"')
_FORM = re.compile(r'<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>', re.DOTALL)
_FIELD = re.compile(r'<(?:input|button|textarea)[^>]*\bname="([^"]*)"(?:[^>]*\bvalue="([^"]*)")?')


@dataclass(frozen=True)
class Seen:
    """What came back, headers and all."""

    where: str
    status: int
    text: str


def crawl(client: Client, begin: Iterable[str]) -> Iterator[Seen]:
    """Every page, file and stream that links lead to."""
    todo, known, times = list(begin), set[str](), Counter[str]()
    while todo:
        address = html.unescape(todo.pop(0)).partition("#")[0]
        path = address.partition("?")[0]
        if (
            not path
            or address in known
            or path.startswith("static/")
            or times[path] >= _MOST_OF_A_PATH
        ):
            continue
        known.add(address)
        times[path] += 1
        if path.endswith("-live") and "?" in address:
            yield Seen(address, 200, listen(client, address))
            continue
        answer = client.get(address)
        yield _seen(address, answer)
        if answer.headers.get("content-type", "").startswith("text/html"):
            todo += _LINK.findall(answer.text)


def act(client: Client, pages: Iterable[Seen]) -> Iterator[Seen]:
    """The answer to every form of these pages, and the page that it leads to."""
    sent = set[tuple[str, str]]()
    secret = client.get("overview").csrf
    for page in pages:
        for action, body in _FORM.findall(page.text):
            fields = {
                html.unescape(name): html.unescape(value) for name, value in _FIELD.findall(body)
            }
            fields["csrf"] = secret
            key = (action, str(sorted(fields.items())))
            if action == "sign-out" or key in sent:
                continue
            sent.add(key)
            for form in (
                fields,
                {"csrf": secret},
                fields | dict.fromkeys(set(fields) - {"csrf"}, "\u2026"),
            ):
                answer = client.post(action, form)
                yield _seen(f"POST {action}", answer)
                if answer.status == 303:
                    yield _seen(f"after {action}", client.get(answer.headers["location"]))


def listen(client: Client, address: str, seconds: float = 1.5) -> str:
    """What a stream of events says for a while."""
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=seconds)
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    told, deadline = b"", time.monotonic() + seconds
    try:
        connection.request("GET", "/" + address, headers={"cookie": cookies})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        while time.monotonic() < deadline:
            told += answer.readline()
    except TimeoutError:
        pass
    finally:
        connection.close()
    return told.decode()


def _seen(where: str, answer: Answer) -> Seen:
    # How long a text is says no more than the text; as a number it may be any, a raw one by chance.
    headers = {
        name: value for name, value in answer.headers.items() if name.lower() != "content-length"
    }
    return Seen(where, answer.status, f"{headers}\n{answer.text}")
