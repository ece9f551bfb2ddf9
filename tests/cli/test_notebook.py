"""What notebooks show of a store and of what is in it: tables of what is public, and escaped."""

from __future__ import annotations

import re
from pathlib import Path

from ptklib.encoding.notebook import MOST_ROWS, html_of, html_rows
from ptkstore import Store
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, spec


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_all_that_one_meets_is_shown(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        store.create_stream(spec(n_max=20_000))
        store.register("a", stream="rides", kind="statistics", config=config(), target=0.2)
        store.push("rides", day(0, 4000))
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        plan, budget = store.plan("rides"), store.budget("rides")
        state = store.get_state("a")
        shown = {
            "store": (store, ["Store", "rides", "statistics", "ACTIVE", "0.2"]),
            "stream": (store.stream("rides"), ["Stream rides", "columns", "speed", "policy"]),
            "ptk": (store.ptk("a"), ["Ptk", "statistics", "0.2"]),
            "plan": (plan, ["Plan", "lines", "OPTIMAL"]),
            "budget": (budget, ["Budget", "blocks", "epsilon"]),
            "state": (state, ["a@v1", "epsilon", state.manifest.epsilon, state.digest]),
        }
        for name, (value, parts) in shown.items():
            html = getattr(value, "_repr_html_")()  # noqa: B009
            assert html.count("<table>") == html.count("</table>") >= 1, name
            assert [part for part in parts if part not in words(html)] == [], name
            assert CANARY not in html


def test_everything_is_escaped_and_long_lists_are_cut() -> None:
    markup = "<script>alert(1)</script>"
    html = html_of(markup, {markup: markup, "rows": [{markup: markup}], "none": None})
    assert "<script" not in html
    assert html.count("&lt;script") == 5
    assert "none" not in html
    rows = html_rows([{"a": number} for number in range(MOST_ROWS + 7)])
    assert rows.count("<tr>") == MOST_ROWS + 1
    assert "and 7 more" in rows
