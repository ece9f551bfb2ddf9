# Everything a newcomer needs: `make demo` and `make test`. Each sets up its own .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# What is imported is compiled once: tests start hundreds of programs, and set-up compiles nothing.
export PYTHONDONTWRITEBYTECODE :=
# Tests run in one process more than there are cores: some wait for servers and browsers.
JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: help setup pythons demo test test-fast servers bench lint proto lock mutations clean
help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make .venv with everything the project needs

# UNLOCKED=1 resolves pyproject.toml anew instead of taking what the lock names.
$(STAMP): pyproject.toml requirements-dev.lock devtools/environment.py devtools/pip_settings.py
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Sage needs Python 3.11 or newer, and $(PYTHON) is %d.%d: set PYTHON=/path/to/python" % v[:2])'
	@echo "setting up $(VENV) (about half a minute the first time)"
	@$(PYTHON) -m devtools.environment $(VENV) $(if $(UNLOCKED),--unlocked)
	@$(BIN)/python -m devtools.locks check >/dev/null || echo "setup: pyproject.toml and the locks differ; what was installed is what is locked: make lock"
	@touch $@

pythons: ## set up and run the fast tests with every Python of 3.11 to 3.13 that is found
	@for version in 3.11 3.12 3.13; do \
		python$$version -c '' 2>/dev/null || { echo "python$$version is not here"; continue; }; \
		$(MAKE) test-fast PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	done

# Where nothing is set up yet the demo takes what a store needs and no more: a fifth of `make setup`.
DEMO := $(if $(wildcard $(STAMP)),$(VENV),.venv-demo)

demo: $(DEMO)/.ready ## a stream that never runs out of budget, then a taxi stream whose states a new team uses, with a report
	@$(DEMO)/bin/python -m examples.endless_stream
	@$(DEMO)/bin/python -m examples.taxi

.venv-demo/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Sage needs Python 3.11 or newer, and $(PYTHON) is %d.%d: set PYTHON=/path/to/python" % v[:2])'
	@$(PYTHON) -m venv .venv-demo
	@.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check .
	@touch $@

test: setup ## all tests; gets, starts and stops the servers they need (REQUIRE_SERVERS=1: a missing one is a failure)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-fast: setup ## the tests that need no server and no browser and do not take long: under three minutes
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --fast

servers: setup ## PostgreSQL, Redis and two S3 servers on this machine until Ctrl-C, with the sage.yaml that uses them
	@$(BIN)/python -m devtools.servers run

bench: setup ## all benchmarks
	$(BIN)/python -m benchmarks

lint: setup ## ruff, mypy strict, layer check, locks that are up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m devtools.layers
	$(BIN)/python -m devtools.locks check

proto: setup ## generate ptkstore/v1 from proto/ again, after buf has looked at it
	$(BIN)/buf lint proto
	$(BIN)/python proto/generate.py

lock: setup ## resolve what is worked with and what goes into the image again, with the digest of every archive
	$(BIN)/python -m devtools.locks write --upgrade

mutations: setup ## break what keeps the promise on purpose, line by line, and see the tests notice: five minutes on two cores
	$(BIN)/python -m tests.mutations --write docs/internals/mutations.md

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist artifacts
