# `make demo` and `make test` install everything that they need. An existing virtual environment is reused. The locks name
# all dependencies, so none need be looked for (and some versions of pip fail at extras that have no hash of their own).
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
STORE ?= $(or $(MLEBENCH_STORE),store)
PORT ?= 4200
STATE ?= .mlebench
DASK_WORKERS ?= 2
# Two for each core: many tests wait for servers and containers. Tests of one file share servers.
CORES := $(shell nproc 2>/dev/null || echo 2)
WORKERS ?= $(shell echo $$((2 * $(CORES))))
PARALLEL := -n $(WORKERS) --dist loadfile $(if $(UNTIL),--until $(UNTIL))
PYTEST ?= $(PARALLEL) -m "not slow"
READERS := .venv-readers
INSPECT := .venv-inspect
OPENENV := .venv-openenv
DOCS := .venv-docs
PIP := $(BIN)/python -m pip --disable-pip-version-check

# $(call install,ENVIRONMENT,WHAT): by uv, which is several times as fast as pip. It is told pip's index, if pip is told of one.
# Where it does not work, for example because the index needs more of pip's settings, pip does it.
INDEX = $${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(PIP) config get global.index-url 2> /dev/null)}}
install = UV_DEFAULT_INDEX="$(INDEX)" $(BIN)/uv pip install --quiet --compile-bytecode --python $(1)/bin/python --no-deps $(2) \
	|| $(1)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps $(2)
LOCKED := --require-hashes --requirement

.PHONY: help demo test test-slow test-all test-failed test-fast test-pythons check format bench docs readers lock update up down clean

help:
	@echo "make demo    the full benchmark on three small competitions: two seeds of the baseline agent, table and HTML report"
	@echo "make test    the tests, but for those marked slow, with the services that this machine has"
	@echo "make test-all    make test, then the slow ones: fleets, Compose, agents in images (UNTIL=TIME: begin none after that)"
	@echo "make test-fast   the tests that need no service and little time, for every change"
	@echo "make test-failed the tests that failed last, one at a time; those that pass now are named as flaky"
	@echo "make test-pythons   the wheel in each later Python that is installed: run, import, a part of the tests"
	@echo "make lock    write the requirements files after a change of pyproject.toml"
	@echo "make update  the same, with the newest versions of everything"
	@echo "make check   ruff, ruff format and mypy"
	@echo "make bench   performance measurements, one line per case (SCALE=full for the long form)"
	@echo "make docs    the documentation as a site, with API reference and figures, in build/site"
	@echo "make readers the tools that read our exports, for the tests of exports, in an environment of their own"
	@echo "make up      start a Prefect server with UI, a worker, Dask and the deployments in the background (PORT=4200)"
	@echo "make down    stop what make up started"
	@echo "make clean   remove the virtual environment and the demo's store"

$(VENV)/installed: pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; set PYTHON=..."; exit 1; }
	@echo "Installing into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@awk '/^[a-z]/ { found = /^uv==/ } found' requirements-dev.txt > $(VENV)/uv.txt
	@$(PIP) install --quiet --no-deps $(LOCKED) $(VENV)/uv.txt || echo "There is no uv; pip takes longer."
	@$(call install,$(VENV),$(LOCKED) requirements.txt)
	@$(call install,$(VENV),--editable .)
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.txt
	@echo "Installing what tests and checks need ..."
	@$(call install,$(VENV),$(LOCKED) requirements-dev.txt)
	@touch $@

demo: $(VENV)/installed
	@$(BIN)/mlebench run --split demo --agent baseline --seeds 2 --run-group demo --store $(STORE)
	@echo "To go on, for example with \`mlebench ls\`:"
	@echo "  export MLEBENCH_STORE=$(if $(findstring ://,$(STORE)),$(STORE),$(abspath $(STORE))) PATH=$(abspath $(BIN)):\$$PATH"

test: $(VENV)/installed-dev
	@$(BIN)/python -m tests.session $(PYTEST)

test-slow: $(VENV)/installed-dev
	@$(BIN)/python -m tests.session $(PARALLEL) -m slow

test-all: test test-slow

test-failed: $(VENV)/installed-dev
	@$(BIN)/python -m tests.session -n 0 --last-failed --last-failed-no-failures none

test-fast: $(VENV)/installed-dev
	@$(BIN)/python -m tests.session -n $(CORES) --dist loadfile --fast

check: $(VENV)/installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy common competitions grading storage sandbox tasks flows deployments mlebench benchmarks tests mlebench_pipeline.py mlebench_command.py
	@$(BIN)/python -m tests.catalog_types

format: $(VENV)/installed-dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/installed-dev
	@$(BIN)/python -m benchmarks

docs: $(VENV)/installed-dev $(DOCS)/installed
	@$(BIN)/python -m tests.docs.site

$(DOCS)/installed: requirements-docs.txt
	@echo "Installing what the site needs into $(DOCS) ..."
	@$(BIN)/python -m venv --clear $(DOCS)
	@$(call install,$(DOCS),$(LOCKED) requirements-docs.txt)
	@touch $@

# One set of versions for every Python and platform. Of a new version, hashes of all its files are kept.
lock update: $(VENV)/installed-dev
	@for extra in "" dev; do \
		UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile pyproject.toml --universal --generate-hashes \
			--no-emit-index-url --quiet $(if $(filter update,$@),--upgrade) $${extra:+--extra $$extra} \
			--output-file requirements$${extra:+-$$extra}.txt || exit 1; \
	done
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --group docs --constraint requirements.txt --universal --generate-hashes \
		--no-emit-index-url --quiet $(if $(filter update,$@),--upgrade) --output-file requirements-docs.txt

# PYTHONS are tried one after the other. Each has an environment of its own, with the wheel instead of the checkout.
PYTHONS ?= python3.12 python3.13
test-pythons: $(VENV)/installed-dev
	@PYTHONS="$(PYTHONS)" $(BIN)/python -m tests.pythons

# Some of these tools need a newer Python than we do.
readers: $(INSPECT)/installed $(OPENENV)/installed $(READERS)/installed
$(READERS)/installed: tests/readers/requirements.txt | $(VENV)/installed
	@for python in $(PYTHON) python3.14 python3.13 python3.12 "$$HOME"/.pyenv/versions/3.1[2-9]*/bin/python; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2> /dev/null; then found="$$python"; break; fi; \
	done; \
	test -n "$$found" || { echo "Python 3.12 or later is needed; set PYTHON=..."; exit 1; }; \
	echo "Installing into $(READERS) ..."; \
	"$$found" -m venv $(READERS)
	@$(call install,$(READERS),--requirement tests/readers/requirements.txt)
	@touch $@

# The client of OpenEnv, which talks to `mlebench serve`.
$(OPENENV)/installed: tests/readers/openenv.txt | $(VENV)/installed
	@echo "Installing into $(OPENENV) ..."
	@$(BIN)/python -m venv --clear $(OPENENV)
	@$(call install,$(OPENENV),--no-deps --requirement tests/readers/openenv.txt)
	@touch $@

# The Inspect port imports `mlebench`, so it runs with our packages: this environment adds what they lack.
$(INSPECT)/installed: tests/readers/inspect_port.txt | $(VENV)/installed
	@echo "Installing into $(INSPECT) ..."
	@$(BIN)/python -m venv --clear $(INSPECT)
	@$(call install,$(INSPECT),--requirement tests/readers/inspect_port.txt)
	@packages() { $$1/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }; \
		echo "import site; site.addsitedir('$$(packages $(BIN)/..)')" > "$$(packages $(INSPECT))/ours.pth"
	@touch $@

up: $(VENV)/installed
	@$(BIN)/python -m deployments.up --state $(STATE) --port $(PORT) --dask-workers $(DASK_WORKERS)

down: $(VENV)/installed
	@$(BIN)/python -m deployments.up --state $(STATE) --down

clean:
	rm -rf $(VENV) $(VENV)-* $(STORE)
