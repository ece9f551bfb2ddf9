"""``pytest --fast``, which is ``make test-fast``: the tests to run after every change, in under
three minutes.

Left out are tests that need a server or a browser, and the parts of the suite that start processes,
wait for real time or draw enough noise to show what an audit shows. ``make test`` runs everything.
"""

from __future__ import annotations

import pytest

from devtools.servers.fixtures import servers_of

__all__: list[str] = []

# Folders and files below tests/.
SLOW = (
    "adapters/",
    "allocator/test_largest_set.py",
    "auditing/",
    "console/",
    "deploy/",
    "devtools/test_environment.py",
    "engine/test_confinement.py",
    "engine/test_faults.py",
    "engine/test_memory.py",
    "engine/test_planner.py",
    "engine/test_profiling.py",
    "engine/test_short_windows.py",
    "engine/test_workers.py",
    "examples/",
    "privacy/test_mechanisms_large_margin.py",
    "privacy/test_mechanisms_selection.py",
    "profiler/test_profiler_audit.py",
    "profiler/test_profiler_privacy.py",
    "ptks/test_additive_privacy.py",
    "ptks/test_check_ptk.py",
    "ptks/test_clusters.py",
    "ptks/test_counts_privacy.py",
    "ptks/test_covariance.py",
    "ptks/test_embeddings.py",
    "ptks/test_forest_privacy.py",
    "ptks/test_hpf.py",
    "ptks/test_interactions.py",
    "ptks/test_quantiles.py",
    "ptks/test_ranking.py",
    "ptks/test_ratios.py",
    "ptks/test_records_alone.py",
    "rpc/",
    "streams/test_crashes.py",
    "test_docs.py",
    "test_docs_commands.py",
    "workers/test_processes.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption(
        "--fast", action="store_true", help="leave out servers, browsers and what takes long"
    )


@pytest.hookimpl(tryfirst=True)  # before servers are fetched for tests that will not run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not fast."""
    if not config.getoption("--fast"):
        return
    slow = tuple(str(config.rootpath / "tests" / one) for one in SLOW)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for one in items:
        browses = "browse" in getattr(one, "fixturenames", ())
        (left if browses or servers_of(one) or str(one.path).startswith(slow) else kept).append(one)
    items[:] = kept
    config.hook.pytest_deselected(items=left)
