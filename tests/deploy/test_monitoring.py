"""Dashboards and alerts ask for metrics, labels and outcomes that a server really has."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import promql_parser
import pytest
import yaml

from ptkstore import Store
from tests.deploy.files import DEPLOY, broken, read
from tests.engine.small import DAY_MS, FIRST_MS
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled
from tests.rpc.test_deliveries import Subscriber, listening, subscribe, until

DASHBOARD, ALERTS = "compose/grafana/dashboards/sage.json", "compose/prometheus/alerts.yml"
OUTCOMES = {"arrived", "late", "given_up"}
# What Prometheus itself says of every target.
TARGETS = {"up": {"job", "instance"}}
CODES = {
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "ABORTED",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL",
    "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED", "ENDED",
}  # fmt: skip


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, set[str]]:
    """The labels of every metric that a server exports after some calls and deliveries, over HTTP
    as Prometheus reads it.
    """
    path = tmp_path_factory.mktemp("metrics")
    subscriber = Subscriber(refuse=lambda version: version == 1)
    with (
        serving(path, server={"metrics_address": "127.0.0.1:0"}) as (server, _),
        channel_to(server) as channel,
        listening(subscriber) as endpoint,
        Store(server.address) as store,
    ):
        filled(store, 2)
        subscribe(channel, endpoint)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        until(lambda: subscriber.told == [2])
        port = server._metrics_server.server_port

        def read_metrics() -> str:
            with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                found: str = answer.read().decode()
                return found

        # The first version was refused until it was given up, the second one was taken.
        until(lambda: set(re.findall(r'outcome="(\w+)"', read_metrics())) == OUTCOMES)
        text = read_metrics()
    found: dict[str, set[str]] = defaultdict(set)
    for line in text.splitlines():
        match = re.match(r"(\w+)(?:\{(.*)\})? ", line)
        if match and not line.startswith("#"):
            found[match[1]] |= set(re.findall(r"(\w+)=\"", match[2] or ""))
    return {**found, **TARGETS}


def selectors(text: str) -> Iterator[Any]:
    """The selectors of a query, parsed as Prometheus does."""
    found: list[Any] = []

    def look(node: Any) -> bool:
        if isinstance(node, promql_parser.MatrixSelector):
            found.append(node.vector_selector)
        elif isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(text), look, None)
    return iter(found)


def queries(deploy: Path) -> list[str]:
    panels = json.loads((deploy / DASHBOARD).read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    return asked + [
        rule["expr"] for group in read(deploy / ALERTS)["groups"] for rule in group["rules"]
    ]


def faults(deploy: Path, exported: Mapping[str, set[str]]) -> list[str]:
    found = []
    for query in queries(deploy):
        try:
            parts = list(selectors(query))
        except ValueError as error:
            found.append(f"{query}: {error}")
            continue
        for one in parts:
            if one.name not in exported:
                found.append(f"{query}: there is no metric {one.name}")
                continue
            for matcher in one.matchers.matchers:
                known = {"code": CODES, "outcome": OUTCOMES}.get(matcher.name)
                if matcher.name not in exported[one.name] and matcher.name not in TARGETS["up"]:
                    found.append(f"{query}: {one.name} has no label {matcher.name}")
                elif known and not set(matcher.value.split("|")) <= known:
                    found.append(f"{query}: {matcher.name} is never {matcher.value}")
        known = set().union(*(exported.get(one.name, set()) for one in parts))
        groups = re.findall(r"by \(([\w, ]+)\)", query)
        found += [
            f"{query}: nothing has the labels {one}"
            for one in groups
            if not set(one.split(", ")) <= known
        ]
    return found


def test_every_metric_label_and_outcome_is_there(exported: Mapping[str, set[str]]) -> None:
    assert len(queries(DEPLOY)) > 12
    assert faults(DEPLOY, exported) == []
    ours = {name for name in exported if name.startswith("sage_") and not name.endswith("_created")}
    asked = {one.name for query in queries(DEPLOY) for one in selectors(query)}
    assert ours <= asked, "a metric that nobody looks at"


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        (ALERTS, "sage_call_seconds_bucket", "sage_seconds_bucket", "no metric sage_seconds_bucket"),
        (ALERTS, 'outcome="given_up"', 'outcome="dead"', "outcome is never dead"),
        (ALERTS, 'code="UNAUTHENTICATED"', 'status="UNAUTHENTICATED"', "has no label status"),
        (ALERTS, "sum by (le) (", "sum by (le) ((", "sum by (le) (("),
        (DASHBOARD, "by (method) (rate(sage_calls", "by (stream) (rate(sage_calls", "nothing has the labels stream"),
        (DASHBOARD, "INTERNAL|", "INTERN|", "code is never INTERN|"),
    ],
)  # fmt: skip
def test_each_fault_is_noticed(
    tmp_path: Path, exported: Mapping[str, set[str]], file: str, old: str, new: str, fault: str
) -> None:
    found = faults(broken(tmp_path, file, old, new), exported)
    assert any(fault in one for one in found), found


def test_grafana_finds_its_dashboard_and_its_source() -> None:
    grafana = DEPLOY / "compose/grafana"
    (source,) = read(grafana / "datasources/prometheus.yml")["datasources"]
    dashboard = json.loads((DEPLOY / DASHBOARD).read_text())
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {source["uid"]}
    (provider,) = read(grafana / "providers/sage.yml")["providers"]
    mounts = read(DEPLOY / "compose/compose.yaml")["services"]["grafana"]["volumes"]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in mounts
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    boxes = [panel["gridPos"] for panel in dashboard["panels"]]
    cells = [
        (x, y)
        for box in boxes
        for x in range(box["x"], box["x"] + box["w"])
        for y in range(box["y"], box["y"] + box["h"])
    ]
    assert len(set(cells)) == len(cells), "panels overlap"
    assert max(x for x, _ in cells) < 24


def test_every_alert_says_what_it_means_and_what_to_do_and_is_documented() -> None:
    page = (DEPLOY.parent / "docs/guides/operate/deploy.md").read_text()
    (group,) = yaml.safe_load((DEPLOY / ALERTS).read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert set(re.findall(r"`(Sage[A-Z]\w+)`", page)) == set(names)
    for rule in group["rules"]:
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("warning", "critical")
