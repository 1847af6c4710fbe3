# Every target sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements.lock
READY := $(VENV)/.ready
PORT ?= 9092

.DEFAULT_GOAL := help
.PHONY: help run test check format bench compat lock clean

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Headrace needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=/path/to/python3.11."; exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
	  set -e; \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV); \
	  uv pip install --quiet --python $(BIN)/python -r $(LOCK); \
	  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
	  set -e; \
	  $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(LOCK); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@$(BIN)/python -m compileall -q src
	@touch $(READY)

run: $(READY) ## Show a stream live: a node (PORT=9092), events and Spark, until Ctrl-C
	@exec $(BIN)/headrace demo --port $(PORT)

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -n $${PYTEST_WORKERS:-auto} --dist loadgroup tests

check: $(READY) ## Lint, format check, types, import contracts, tidiness
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/repo

format: $(READY) ## Rewrite the sources in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Measure beside the peers and print ratios
	$(BIN)/python -m bench $(NAMES)

compat: $(READY) ## Test against Apache Kafka's own classes and tools
	$(BIN)/python -m pytest -p no:cacheprovider -v compat

lock: $(READY) ## Refresh the pinned versions
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-emit-index-url \
	  --extra arrow --extra spark --group dev --upgrade -o $(LOCK) pyproject.toml

clean: ## Remove what the targets made
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
