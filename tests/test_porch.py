"""What a newcomer sees first is sound: licence, notices, templates, the workflow and the hooks."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema.validators import validator_for

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
FORMS = sorted(one for one in ROOT.glob(".github/ISSUE_TEMPLATE/*.yml") if one.name != "config.yml")
SCHEMAS = {
    ".github/workflows/ci.yml": "vendor.github-workflows",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    **{str(one.relative_to(ROOT)): "vendor.github-issue-forms" for one in FORMS},
}


def faults(schema_name: str, document: Any) -> list[str]:
    schema = get_builtin_schema(schema_name)
    return [one.message for one in validator_for(schema)(schema).iter_errors(document)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_for_github_is_what_github_reads(name: str) -> None:
    # `on` is a word of YAML 1.1 for true, and of workflows for something else.
    document = yaml.load((ROOT / name).read_text(), Loader=yaml.BaseLoader)
    typed = yaml.safe_load((ROOT / name).read_text())
    typed |= {"on": typed.pop(True)} if True in typed else {}
    assert faults(SCHEMAS[name], typed) == []
    assert set(document) == set(typed)


def test_a_fault_would_be_noticed() -> None:
    assert faults(
        "vendor.github-workflows", {"on": "push", "jobs": {"a": {"runs-on": "x", "stepz": []}}}
    )
    assert faults("vendor.github-issue-forms", {"name": "x", "body": []})


def test_the_workflow_runs_what_must_hold_and_may_only_read() -> None:
    workflow = yaml.load((ROOT / ".github/workflows/ci.yml").read_text(), Loader=yaml.BaseLoader)
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    for step in job["steps"]:
        assert "run" in step or re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])


def test_whoever_reports_or_mends_a_bug_is_asked_for_its_row() -> None:
    for name in (
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/pull_request_template.md",
        "CONTRIBUTING.md",
    ):
        assert "docs/bugs.md" in (ROOT / name).read_text(), name
    for name in (
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/pull_request_template.md",
        "CONTRIBUTING.md",
    ):
        assert "SECURITY.md" in (ROOT / name).read_text(), name


def test_hooks_run_tools_that_are_there() -> None:
    hooks = [
        hook
        for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
        for hook in repo["hooks"]
    ]
    assert len(hooks) >= 3
    for hook in hooks:
        program, *arguments = hook["entry"].split()
        assert program.startswith(".venv/bin/"), hook["id"]
        assert (BIN / Path(program).name).exists(), hook["id"]
        if arguments[0] == "-m":
            assert importlib.util.find_spec(arguments[1]) is not None, hook["id"]
            assert (
                f"$(BIN)/python -m {' '.join(arguments[1:])}" in (ROOT / "Makefile").read_text()
            ), hook["id"]


def test_the_licence_is_the_one_that_the_project_claims() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
    )


def test_the_notice_names_what_others_wrote() -> None:
    vendor, notice = ROOT / "ptkstore/console/static/vendor", (ROOT / "NOTICE").read_text()
    named = [
        Path(file)
        for one in json.loads((vendor / "versions.json").read_text()).values()
        for file in one["files"]
    ]
    licences = {file.name for file in named if file.suffix == ".LICENSE"}
    assert licences
    assert {one.name for one in vendor.iterdir()} == {file.name for file in named} | {
        "versions.json"
    }
    for licence in licences:
        assert licence in notice


def test_the_image_carries_the_licence() -> None:
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    ignored = (ROOT / "deploy/Dockerfile.dockerignore").read_text().split()
    for name in ("LICENSE", "NOTICE"):
        assert re.search(rf"^COPY .*\b{name}\b", dockerfile, flags=re.M)
        assert f"!{name}" in ignored
