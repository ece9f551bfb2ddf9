"""``docs/reference/sage-yaml.md``: every key of ``sage.yaml``, made from the classes that read it.

``python -m devtools.project_page --write`` writes it; a test holds page and classes equal. Keys,
defaults and what kinds take come from the classes; what a key of a stream, a column, a policy or a
PTK is for is said here, once, and a key without words is an error.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path

from ptklib import registry
from ptklib.ledger.policy import Policy
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.cli.project.declaration import SETTINGS, DeclaredPtk
from ptkstore.cli.store.kinds import fields_of

__all__ = ["PAGE", "WORDS", "page"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/sage-yaml.md"
# Those that have no page of their own name among the guides of PTKs.
GUIDES = {
    "linear_regression": "models/linear",
    "logistic_regression": "models/logistic",
    "mlp_classifier": "models/mlp",
    "mlp_regressor": "models/mlp",
    "ratios": "ptks/statistics",
    "softmax_regression": "models/logistic",
}

_INTRO = f"""# sage.yaml

What a store should have: `sage apply` makes it so, all of it or nothing, and applying twice changes
nothing. The whole file is checked before anything is done, and everything that is wrong in it is told
at once, each with its line. An unknown key and a key that is given twice are errors.

```yaml
streams:
  - name: rides
    time_column: pickup_at
    policy: {{unit: event, epsilon: 1, delta: "1e-6"}}
    window_seconds: 604800
    block_seconds: 86400
    columns:
      - {{name: pickup_at, type: "timestamp[ms]", lower: 2026-01-01}}
      - {{name: zone, type: string, domain: [airport, centre, harbour]}}
      - {{name: speed_kmh, type: float64, lower: 0, upper: 80}}
ptks:
  - name: zone-speed
    stream: rides
    kind: statistics
    target: 0.05
    over: {{rolling: 4}}
    config:
      keys: [{{kind: categories, column: zone, values: [airport, centre, harbour]}}]
      statistics: [mean]
      value: speed_kmh
      lower: 0
      upper: 80
```

The file may also have the sections {", ".join(f"`{name}`" for name in SETTINGS)}: the
[settings](settings.md) of a server. This page is made from the code by
`python -m devtools.project_page --write`.
"""

WORDS: Mapping[str, Mapping[str, str]] = {
    "streams": {
        "name": "1 to 100 letters, digits, `_`, `.`, `-`",
        "columns": "a list, as below; the time column is one of them",
        "time_column": "the timestamp column that says when a record happened",
        "unit": "whom the promise is for; that of the policy when left out",
        "user_column": "at user level: whose record it is (an integer or string column)",
        "records_per_user": "at user level: the most records of a user that are read of a block, the first to arrive",
        "policy": "the promise, as below; epsilon 1, delta 1e-6 for each event when left out",
        "window_seconds": "how often PTKs train; then the raw data of the window is destroyed",
        "block_seconds": "of how much event time a block is; divides `window_seconds`; that when left out",
        "lateness_seconds": "how long after the end of a block its records may still come",
        "horizon_blocks": "how many blocks ahead of the oldest open one event times may lie",
        "n_max": "the most records of a window that its plan may ask for",
        "profile_share": "the share of the records that is set aside for profiles",
        "out_of_bounds": "`clip`: a value beyond its bounds becomes the nearest bound, one outside its "
        "domain the first of it; `refuse`: the record is left out",
        "late": "`oldest_open`: late records count as those of the oldest open block; `quarantine`: they "
        "are set aside and never read",
        "count_epsilon": "what the one noisy count of each block costs",
        "quotas": "contexts, and the share of the policy that each may use: `{research: 0.2}`",
        "use": "`surplus`: PTKs also get what is left of a window; `minimum`: what their targets need. "
        "The one key that may be changed later",
    },
    "columns": {
        "name": "letters, digits, `_`, `.`, `:`, `-`; begins with a letter or `_`",
        "type": "`int8` to `int64`, `uint8` to `uint32`, `float32`, `float64`, `bool`, `string`, "
        "`dictionary`, `timestamp[s]`, `[ms]`, `[us]`, `[ns]`, also with `, tz=UTC`",
        "lower": "the public lower bound of a number or a time; the first day, of the time column",
        "upper": "the public upper bound; of a string the most bytes that a value may have",
        "domain": "the public list of values, of an integer, `string` or `dictionary` column",
        "nullable": "true where a value may be missing; other records with a null are left out",
    },
    "policy": {
        "unit": "`event`: the promise is for every record; `user`: for everything of every user",
        "epsilon": "the most that everything which ever leaves the stream may tell of one unit",
        "delta": 'the probability with which the promise may fail; 0 for pure epsilon. Quote `"1e-6"`',
        "composition": "`pure`, `basic`, `renyi`, `gaussian` or `strong`; `renyi` where delta is positive, "
        "else `pure` ([which](../guides/README.md#choose-a-composition))",
    },
    "ptks": {
        "name": "of the PTK; features are fetched by it",
        "stream": "that it trains on",
        "kind": "one of those below, or of a package that is installed (`sage ptk kinds`)",
        "config": "the fields of the kind",
        "target": "the error to keep, between 0 and 1 ([what that means](../guides/profiles.md))",
        "epsilon": "instead of a target: best effort with that epsilon",
        "train_every": "in which windows it trains: every n-th",
        "over": "of which windows a state speaks: `all`, `last`, `{rolling: K}` or `{decay: F}` "
        "([more](../guides/profiles.md#windows-that-a-state-speaks-of))",
    },
}
_HEADINGS = {
    "streams": (
        "An entry under streams",
        StreamSpec,
        "A stream never changes once it has records.",
    ),
    "columns": (
        "An entry under columns",
        Column,
        "Bounds and domains are promises about all data to come: say what you know without looking. "
        "Numbers need `lower` and `upper` (integers may have a `domain`), strings a `domain` or an "
        "`upper`, dictionaries a `domain`, times `lower` and `upper`, the time column `lower`; the user "
        "column and `bool` need nothing.",
    ),
    "policy": ("policy", Policy, "[What the numbers mean](../start/differential-privacy.md)."),
    "ptks": (
        "An entry under ptks",
        DeclaredPtk,
        "One of `target` and `epsilon`. Other keys than `config`, `target` and `epsilon` never change "
        "once the PTK is registered.",
    ),
}
_CONFIG = """## The config of each kind
What the fields are for is in the guide of the kind. What the stream says already may be left out, where the
stream is in the same file: `keys: [zone, hour(pickup_at)]` has the domains or bounds of the columns, `value` and
`label` their bounds, `inputs` and `values` may be names of columns, and `classes` are the domain of the `label`.
What is written counts.

```yaml
streams:
  - name: visits
    time_column: at
    columns:
      - {name: at, type: "timestamp[ms]", lower: 2026-01-01}
      - {name: ward, type: string, domain: [north, south]}
      - {name: minutes, type: float64, lower: 0, upper: 240}
ptks:
  - name: minutes-by-ward
    stream: visits
    kind: statistics
    target: 0.1
    config: {keys: [ward, hour(at)], statistics: [mean, count], value: minutes}
```
"""
_REQUIRED = {"ptks": ("name", "stream", "kind", "config")}


def page() -> str:
    """The whole page."""
    parts = [_INTRO]
    for section, (heading, section_type, words) in _HEADINGS.items():
        rows = [
            f"| `{field.name}` | {_default(section, field)} | {WORDS[section][field.name]} |"
            for field in dataclasses.fields(section_type)
        ]
        head = ["| key | if left out | what for |", "|---|---|---|"]
        parts.append("\n".join([f"## {heading}", words, "", *head, *rows, ""]))
    parts.append(
        "## The config of each kind\nWhat the fields are for is in the guide of the kind.\n"
    )
    for kind in _own_kinds():
        guide = GUIDES.get(kind, f"ptks/{kind}")
        rows = [
            f"| `{field.name}` | {'must be given' if field.default is None else f'`{field.default}`'} "
            f"| {field.takes.replace('|', 'or')} |"
            for field in fields_of(kind)
        ]
        head = ["| field | if left out | takes |", "|---|---|---|"]
        parts.append("\n".join([f"### [{kind}](../guides/{guide}.md)", "", *head, *rows, ""]))
    return "\n".join(parts)


def _own_kinds() -> list[str]:
    """Those of this project: others may be installed beside it."""
    return [
        name for name, kind in registry.kinds().items() if kind.__module__.startswith("ptklib.")
    ]


def _default(section: str, field: dataclasses.Field[object]) -> str:
    given = field.default
    if section != "ptks" and given is None and field.name == "policy":
        return "see there"
    if field.default_factory is not dataclasses.MISSING:
        return "none"
    if given is dataclasses.MISSING or field.name in _REQUIRED.get(section, ()):
        return "must be given"
    if given is None:
        return "none"
    if given == "" or field.name == "block_seconds":
        return "see there"
    return f"`{str(given).lower() if isinstance(given, bool) else given}`"


def main() -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(
        prog="python -m devtools.project_page", description="the page of sage.yaml"
    )
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
