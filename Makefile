# Everything a newcomer needs: `make demo` and `make test`. Each sets up its own .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Tests run in one process more than there are cores: some wait for servers and browsers.
JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

# For the Python of deploy/Dockerfile.
LOCK = $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --python-version 3.12.11 --python-platform linux --no-header --no-annotate

.PHONY: help setup demo test test-fast servers bench lint proto lock mutations clean
help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make .venv with everything the project needs

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Sage needs Python 3.11 or newer, and $(PYTHON) is %d.%d: set PYTHON=/path/to/python" % v[:2])'
	@echo "setting up $(VENV) (about a minute the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: setup ## a stream that never runs out of budget, then a taxi stream whose states a new team uses, with a report
	@$(BIN)/python -m examples.endless_stream
	@$(BIN)/python -m examples.taxi

test: setup ## all tests; gets, starts and stops the servers they need (REQUIRE_SERVERS=1: a missing one is a failure)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-fast: setup ## the tests that need no server and no browser and do not take long: under three minutes
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --fast

servers: setup ## PostgreSQL, Redis and two S3 servers on this machine until Ctrl-C, with the sage.yaml that uses them
	@$(BIN)/python -m tests.servers run

bench: setup ## all benchmarks
	$(BIN)/python -m benchmarks

lint: setup ## ruff, mypy strict, layer check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.layers

proto: setup ## generate ptkstore/v1 from proto/ again, after buf has looked at it
	$(BIN)/buf lint proto
	$(BIN)/python proto/generate.py

lock: setup ## resolve what goes into the image again, with the digest of every archive
	$(LOCK) --extra server --extra servers --output-file deploy/requirements.lock pyproject.toml
	echo hatchling | $(LOCK) --output-file deploy/build.lock -

mutations: setup ## break each mechanism on purpose and see the tests notice
	$(BIN)/python -m tests.mutations --write docs/internals/mutations.md

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist artifacts
