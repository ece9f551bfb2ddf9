"""The page of a budget: the ledger as it is, over a directory and over a server."""

from __future__ import annotations

import csv
import io
import re

import pytest

from ptkstore import Store
from ptkstore.api.views import ChargeLine, LedgerColumn, LedgerMap
from ptkstore.console import DirectorySource, ServerSource
from ptkstore.console.pages.budget import entry_line, forecasts
from ptkstore.drawing.ledger_svg import burn_down, heat_map, step_of
from tests.console.running import Running, console
from tests.console.stores import MARKUP
from tests.console.test_pages import words
from tests.engine.small import CANARY, DAY_MS, FIRST_MS


def book_of(*columns: LedgerColumn) -> LedgerMap:
    return LedgerMap("s", 0, sum(one.blocks for one in columns), 500, columns, (), 0, 0)


def column(*shares: float, **more: object) -> LedgerColumn:
    known: dict[str, object] = {
        "first": "a",
        "last": "b",
        "window": 1,
        "blocks": 1,
        "retired": 0,
        "flat": False,
    }
    mean = sum(shares) / len(shares)
    return LedgerColumn(**(known | {"shares": shares, "mean": mean} | more))  # type: ignore[arg-type]


def test_the_budget_is_that_of_the_store(shown: tuple[Running, Store]) -> None:
    running, store = shown
    page = running.signed_in().get("budget?stream=rides").text
    text = words(page)
    assert "ε ≤ 1, δ ≤ 1e-06 per event for ever, renyi composition" in text
    told = store.budget_summary("rides")
    assert f"Blocks alive {told.blocks_alive}" in text
    assert f"Blocks closed {told.blocks_retired}" in text
    book = store.ledger_map("rides")
    assert "Blocks 1 to 4 of 4" in text
    for one in book.columns:
        assert f"{one.first} closed {100 * max(one.shares):.1f} % {100 * one.mean:.1f} %" in text
        assert one.mean < max(one.shares)
    assert page.count('class="see"') == 4


def test_who_spent_what_adds_up(shown: tuple[Running, Store]) -> None:
    running, store = shown
    text = words(running.signed_in().get("budget?stream=rides").text)
    book = store.ledger_map("rides")
    assert f"Over all time: {sum(one.charges for one in book.spenders)} charges that stand." in text
    for one in book.spenders:
        assert f"{one.who} {one.purpose} {one.charges} {100 * one.most:.1f} % of ε" in text
    counts = next(one for one in book.spenders if one.purpose == "count")
    assert f"counts of blocks 2 {100 * counts.part:.1f} %" in text
    training = sum(one.part for one in book.spenders if one.purpose == "training")
    assert re.search(rf"Purpose Charges Part training 10 {100 * training:.1f} %", text)


def test_when_blocks_are_closed(shown: tuple[Running, Store]) -> None:
    running, store = shown
    text = words(running.signed_in().get("budget?stream=rides").text)
    plan = store.plan("rides")
    assert plan is not None
    after = 1 - max(one.used for one in plan.partitions)
    # The third day is held and not sealed yet.
    assert re.search(rf"2026-01-03 none sealed yet 100 % {100 * after:.0f} % 2026-01-04", text)
    told, book = store.budget_summary("rides"), store.ledger_map("rides")
    found = forecasts(store.stream("rides"), told, book, None)
    assert [one.after for one in found] == [None] * 3
    assert found[0].closes_ms - found[0].begins_ms == DAY_MS
    assert found[0].begins_ms == FIRST_MS + 2 * DAY_MS


def test_the_ledger_is_searched_and_turned(shown: tuple[Running, Store]) -> None:
    running, store = shown
    client = running.signed_in()

    def numbers(query: str) -> list[int]:
        part = client.get(f"budget?stream=rides&{query}").text.partition('id="entries"')[2]
        return [int(one) for one in re.findall(r'<th scope="row" class="number">(\d+)', part)]

    every = [one.number for one in store.charges("rides", limit=100, newest_first=True).charges]
    page = client.get("budget?stream=rides").text
    assert numbers("") == every[:15]
    older = re.search(r'rel="next" href="budget\?stream=rides&amp;after=([^"#]+)', page)
    assert older is not None
    assert numbers(f"after={older[1]}") == every[15:]
    speed = [one.number for one in store.charges("rides", limit=100, find="hour-speed").charges]
    assert numbers("find=hour-speed") == speed
    day = [one.number for one in store.charges("rides", limit=100, blocks="2026-01-01").charges]
    assert numbers("blocks=2026-01-01") == day
    assert 0 < len(day) < len(every)
    assert numbers("find=nobody") == numbers("blocks=1999") == []
    assert "No entry matches" in client.get("budget?stream=rides&find=nobody").text
    bad = client.get("budget?stream=rides&after=nonsense")
    assert (bad.status, "PAGE_TOKEN_INVALID" in bad.text) == (400, True)
    for query in ("begin=x", "begin=-1", "span=7", "begin=99999999999999"):
        assert client.get(f"budget?stream=rides&{query}").status == 200
    assert "There are no blocks from place 4 on" in words(
        client.get("budget?stream=rides&begin=900").text
    )
    assert (
        MARKUP
        not in client.get(
            "budget?stream=rides&find=%3Cscript%3Ealert(1)%3C/script%3E&blocks=%22%3E"
        ).text
    )


def test_the_ledger_as_a_file(shown: tuple[Running, Store]) -> None:
    running, store = shown
    client = running.signed_in()
    answer = client.get("ledger.csv?stream=rides")
    assert answer.headers["content-disposition"] == 'attachment; filename="ledger-rides.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    every = store.charges("rides", limit=100, newest_first=True).charges
    assert [(int(row["number"]), row["kind"], row["key"]) for row in rows] == [
        (c.number, c.kind, c.key) for c in every
    ]
    some = list(
        csv.DictReader(io.StringIO(client.get("ledger.csv?stream=rides&find=hour-speed").text))
    )
    assert {row["key"] for row in some} == {"cycle-1/hour-speed", "cycle-2/hour-speed"}
    epsilon = store.get_state("hour-speed").manifest.epsilon
    assert any(f"ε = {epsilon}" in row["cost"] for row in some)
    blocks = list(csv.DictReader(io.StringIO(client.get("blocks.csv?stream=rides").text)))
    assert [row["block"] for row in blocks] == [one.name for one in store.blocks("rides").blocks]
    assert [int(row["dp_records"]) for row in blocks] == [
        one.dp_records for one in store.blocks("rides").blocks
    ]
    assert (
        client.get("ledger.csv?stream=nowhere").status
        == client.get("blocks.csv?stream=nowhere").status
        == 404
    )


def test_a_long_file_is_sent_as_it_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    charges = Store.charges

    def one_at_a_time(self: Store, stream: str, **options: object) -> object:
        asked.append(1)
        return charges(self, stream, **{**options, "limit": 1})  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "charges", one_at_a_time)
    with console(DirectorySource(store, "x")) as running:
        text = running.signed_in().get("ledger.csv?stream=rides").text
    assert len(text.splitlines()) == 1 + 26
    # One for each row, and the last one finds nothing: nothing was asked for at once.
    assert len(asked) >= 26


def test_a_stream_that_has_nothing_teaches(running: Running, empty_store: Store) -> None:
    text = words(running.signed_in().get("budget?stream=quiet").text)
    assert "The ledger is empty" in text
    assert "sage run --until now" in text
    with console(DirectorySource(empty_store, "x")) as other:
        assert "No streams, so no budget" in words(other.signed_in().get("budget").text)
        assert "No PTKs yet" in words(other.signed_in().get("ptks").text)


def test_who_sees_it(served: tuple[Store, str], tokens: dict[str, str]) -> None:
    for role, status in (("reader", 200), ("developer", 200), ("operator", 200), ("limited", 403)):
        with console(ServerSource(served[1], token=tokens[role])) as running:
            client = running.signed_in()
            assert client.get("budget?stream=rides").status == status
            assert client.get("ledger.csv?stream=rides").status == status
            assert client.get("blocks.csv?stream=rides").status == status


def test_nothing_raw_is_shown(running: Running) -> None:
    client = running.signed_in()
    for path in ("budget?stream=rides", "ledger.csv?stream=rides", "blocks.csv?stream=rides"):
        assert CANARY.split("-")[1] not in client.get(path).text


@pytest.mark.parametrize(
    ("share", "step"),
    [(0, 0), (1e-9, 1), (0.05, 1), (0.1, 1), (0.11, 2), (0.95, 10), (1, 10), (1.2, 10)],
)
def test_colours_round_up(share: float, step: int) -> None:
    assert step_of(share) == step


def test_the_map_is_to_scale() -> None:
    text = heat_map(book_of(column(0.95, 0.95, 0.05, 0.05), column(0.0, 0.0, 0.0, 0.0)))
    shapes = {
        name: re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", d)
        for name, d in re.findall(r'class="(h\d+)" d="([^"]+)"', text)
    }
    assert set(shapes) == {"h10", "h1", "h0"}
    ((x, top, wide, tall),) = shapes["h10"]
    ((_, other_top, _, other_tall),) = shapes["h1"]
    ((next_x, _, _, whole_tall),) = shapes["h0"]
    # The first tags are at the bottom; neighbours of one colour are one shape.
    assert float(top) == pytest.approx(float(other_top) + float(other_tall))
    assert float(tall) == float(other_tall) == float(whole_tall) / 2
    assert float(next_x) == pytest.approx(float(x) + float(wide))
    assert "style=" not in text
    assert "<script" not in heat_map(book_of(column(0.5, first=MARKUP, last=MARKUP)))
    assert heat_map(book_of()) == burn_down(book_of()) == ""


def test_pictures_stay_small() -> None:
    shares = tuple((k % 11) / 10 for k in range(32))
    book = book_of(*(column(*shares, first=f"2026-01-01T{k:02}:00Z", flat=True) for k in range(96)))
    assert len(heat_map(book)) < 150_000
    assert len(burn_down(book)) < 20_000


def test_what_is_left_goes_down() -> None:
    text = burn_down(book_of(column(0.0, 0.5), column(1.0, 1.0)))
    worst = re.search(r'class="curve" d="M[\d.]+ ([\d.]+)h[\d.]+L[\d.]+ ([\d.]+)', text)
    mean = re.search(r'class="curve mean" d="M[\d.]+ ([\d.]+)h', text)
    assert worst is not None
    assert mean is not None
    # Half is left at the worst tags of the first block, three quarters on average, nothing of the
    # second.
    assert (float(worst[1]), float(worst[2]), float(mean[1])) == (12 + 90, 12 + 180, 12 + 45)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        ({"kind": "pure", "epsilon": "0.01"}, "ε = 0.01 (pure)"),
        (
            {"kind": "approximate", "epsilon": "0.5", "delta": "1e-9"},
            "ε = 0.5, δ = 1e-09 (approximate)",
        ),
        (
            {"kind": "discrete_laplace", "scale": "1000/77", "sensitivity": 1},
            "ε = 0.077 (discrete laplace)",
        ),
        ({"kind": "gaussian", "sigma": "4"}, "gaussian: sigma = 4"),
        ({"kind": "sum", "parts": [1]}, "sum"),
    ],
)
def test_how_costs_read(cost: dict[str, object], text: str) -> None:
    slices = [[[[0, 2], [5, 1]], 0, 1 << 63]]
    line = entry_line(ChargeLine(7, "reserve", "k", {"cost": cost, "slices": slices}))
    assert line.what == text
    assert line.where.replace("\u00a0", " ") == "3 blocks, 50.0 % of the tags"
