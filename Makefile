# Two commands set everything up: `make demo` and `make test`. They need only Python 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/eval
TRAIN ?= ../shared/train

# Python's bytecode is kept while tests run, also where it is not wanted elsewhere: without it each worker spends
# seconds on rewriting the assertions of all test files.
# Many tests wait for other processes, so there are more workers than processors.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $$(expr $$(getconf _NPROCESSORS_ONLN) + 2) --dist worksteal

# Where npm is, the tests also run clients for Node.js. Without a registry they are skipped.
NODE := $(if $(shell command -v npm),.node/.installed)

# The multilingual model is a distribution of its own, which no archive of the sources has.
MODELS := $(wildcard models/nacre-memory-multilingual)

# SQLite with encryption, beside the environment: it has the module of apsw, too, and must not replace it.
MC := .mc/.installed

.PHONY: demo test test-fast check format bench bench-speed bench-quality clean

demo: $(VENV)/.runtime
	$(BIN)/nacre demo

test: $(VENV)/.dev $(NODE) $(MC)
	$(PYTEST)

test-fast: $(VENV)/.dev $(MC)
	$(PYTEST) -m 'not slow'

# mypy uses one processor. On another, tests are collected once: what pytest makes of their files is kept, and no worker
# has to make it again.
check: $(VENV)/.dev $(NODE) $(MC)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -qq > /dev/null & $(BIN)/mypy && wait
	$(PYTEST)

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.node/.installed: tools/node_clients/package-lock.json
	-$(PYTHON) tools/install_node_clients.py && touch $@

$(MC): pyproject.toml | $(VENV)/.dev
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target .mc --no-deps 'apsw-sqlite3mc>=3.54' && touch $@

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed --data $(TRAIN) --engines nacre --sizes 1000,10000,100000 --merge
	$(BIN)/python -m benchmarks.start

bench-speed: $(VENV)/.bench
	$(BIN)/python -m benchmarks.speed --data $(TRAIN)

bench-quality: $(VENV)/.bench
	$(BIN)/python -m benchmarks.quality --data $(DATA) --recipes default,maxsim,no-rerank,classic --set rerank_ms=0 --rivals all --name quality

clean:
	rm -rf $(VENV) .node .mc dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/.cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.runtime: pyproject.toml $(MODELS:%=%/pyproject.toml)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Nacre needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(MODELS:%=--editable ./%) --editable '.[server]'
	touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	touch $@
