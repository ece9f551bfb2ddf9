"""A newcomer with a file of their own: from `pip install` to features in a pipeline, without a
server and without reading any source.

The file is none that the docs or the templates use. Commands run with what the project itself
requires and nothing else: the packages of extras cannot be imported.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ptkstore import Store
from tests.cli.sage import call, environment

FIRST = "2025-09-01"
COMMANDS = (
    "sage init --from visits.parquet --bounds minutes=0:480",
    "sage apply",
    "sage stream check visits visits.parquet",
    "sage stream push visits visits.parquet",
    "sage run --until 2025-09-15",
    "sage ptk list",
    "sage featurize triage.csv --ptk minutes-by-ward -o features.csv",
)
SCRIPT = """
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from ptklib.sklearn import PtkTransformer
from ptkstore import Store
with Store(".") as store:
    states = [store.get_state("minutes-by-ward"), store.get_state("minutes-by-hour")]
mine = pd.read_csv("triage.csv", parse_dates=["Arrived"])
model = make_pipeline(PtkTransformer(states=states), StandardScaler(), Ridge())
asked, stays = mine[["ward", "Arrived"]], mine["minutes"]
print(model.fit(asked, stays).score(asked, stays))
"""
MINUTES = {"cardiology": 60, "emergency": 35, "maternity": 90, "surgery": 140}
# As where they are not installed.
_ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
from ptkstore.cli import main
main({arguments!r}, prog_name="sage")
"""


def visits(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    ward = generator.choice(list(MINUTES), rows, p=[0.2, 0.5, 0.1, 0.2])
    seconds = np.sort(generator.uniform(0, 14 * 86_400, rows))
    stay = np.array([MINUTES[name] for name in ward]) * generator.lognormal(-0.045, 0.3, rows)
    stay[generator.random(rows) < 0.01] = np.nan
    return pd.DataFrame(
        {
            "Arrived": pd.Timestamp(FIRST) + pd.to_timedelta(seconds, unit="s"),
            "ward": ward,
            "triage": generator.integers(1, 6, rows).astype("int16"),
            "minutes": stay.round(1),
            "insured": generator.random(rows) < 0.8,
            "remark": [f"note {number}" for number in range(rows)],
        }
    )


def own_packages() -> set[str]:
    """The distributions that `pip install ptkstore` brings."""
    known, waiting = {"ptkstore"}, ["ptkstore"]
    while waiting:
        try:
            texts = requires(waiting.pop()) or []
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, texts):
            name = canonicalize_name(requirement.name)
            asked = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if asked and name not in known:
                known.add(name)
                waiting.append(name)
    return known


def blocked_modules() -> list[str]:
    """Modules of packages that only extras and the work on the project bring."""
    own = own_packages()
    return sorted(
        module
        for module, distributions in packages_distributions().items()
        if not {canonicalize_name(name) for name in distributions} & own
        and module.isidentifier()
        and module not in sys.stdlib_module_names
    )


class Walked(NamedTuple):
    """Where the walk led, and what each command printed."""

    path: Path
    printed: list[str]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    path = tmp_path_factory.mktemp("newcomer")
    visits(30_000, seed=5).to_parquet(path / "visits.parquet", index=False)
    visits(60, seed=6).dropna().to_csv(path / "triage.csv", index=False)
    blocked, printed = blocked_modules(), []
    for command in COMMANDS:
        arguments = command.split()[1:]
        run = subprocess.run(
            [sys.executable, "-c", _ALONE.format(blocked=blocked, arguments=arguments)],
            cwd=path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, f"{command}: {run.stdout}{run.stderr}"
        printed.append(run.stdout)
    return Walked(path, printed)


def test_extras_are_out_of_reach() -> None:
    blocked = blocked_modules()
    assert {"grpc", "pandas", "sklearn", "starlette", "pydantic", "hypothesis"} <= set(blocked)
    assert not {"click", "numpy", "pyarrow", "sqlalchemy", "structlog", "yaml"} & set(blocked)


def test_it_is_short(walked: Walked) -> None:
    assert len(COMMANDS) <= 12
    assert len(COMMANDS) + len(SCRIPT.strip().splitlines()) <= 25
    assert len(walked.printed) == len(COMMANDS)


def test_two_ptks_are_planned_and_trained(walked: Walked) -> None:
    assert re.search(r"ptk +minutes-by-ward +REGISTERED", walked.printed[1])
    assert re.search(r"ptk +minutes-by-hour +REGISTERED", walked.printed[1])
    assert walked.printed[4].count("PUBLISHED") == 4
    with Store(walked.path) as store:
        assert [view.status for view in store.ptks()] == ["ACTIVE", "ACTIVE"]


def test_what_was_looked_at_is_marked_and_what_was_told_is_not(walked: Walked) -> None:
    text = (walked.path / "sage.yaml").read_text()
    marked = {
        line.split(" of ")[1].split(".")[0] for line in text.splitlines() if "# LOOKED" in line
    }
    assert marked == {"Arrived", "ward", "triage", "minutes", "remark"}
    assert "# LOOKED AT: nullable of minutes" in text
    assert '{name: "minutes", type: "float64", lower: 0, upper: 480, nullable: true}' in text
    assert "note 1" not in text, "values of a text without a domain are nobody's business"


def test_the_features_are_what_the_file_says(walked: Walked) -> None:
    features = pd.read_csv(walked.path / "features.csv")
    means = features.groupby("ward")["ward_minutes_mean"].first()
    for ward, minutes in MINUTES.items():
        # The target: 10% of the range of 480.
        assert means[ward] == pytest.approx(minutes, abs=48)
    assert means["surgery"] > means["maternity"] > means["cardiology"] > means["emergency"]


def test_knowledge_as_of_a_time_knows_nothing_from_after_it(walked: Walked) -> None:
    asked = ["featurize", "triage.csv", "--ptk", "minutes-by-ward", "-o", "then.csv", "--json"]
    # Windows of a week end on Thursdays.
    for day, version in (("2025-09-04", 1), ("2025-09-10", 1), ("2025-09-11", 2)):
        body = call(*asked, "--as-of", day, cwd=walked.path).json
        assert body["states"] == [f"minutes-by-ward@v{version}"]
    error = call(*asked, "--as-of", "2025-09-03", cwd=walked.path, code=1).error
    assert error["reason"] == "STATE_UNKNOWN"
    named = call(
        *asked[:3], "minutes-by-ward@v2", *asked[4:], "--as-of", "2025-09-03", cwd=walked.path
    )
    assert named.json["states"] == ["minutes-by-ward@v2"]


def test_they_serve_in_a_pipeline(walked: Walked) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=walked.path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) > 0.5


def test_the_store_holds_no_value_of_the_file(walked: Walked) -> None:
    note = json.loads((walked.path / ".sage-push.json").read_text())
    assert [body["file"] for body in note["files"]] == ["visits.parquet"]
    assert "note 29999" not in json.dumps(note)
    (walked.path / "visits.parquet").rename(walked.path.parent / "visits.parquet")
    with Store(walked.path) as store:
        findings = store.doctor([b"note 29999"])
    assert [finding.what for finding in findings if finding.level == "ERROR"] == []
