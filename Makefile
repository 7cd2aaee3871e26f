# Two commands on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.

PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE # the tests start many processes, each of which would compile what it imports
BIN := .venv/bin
SAMPLE := ptx/vecadd.ptx

.PHONY: demo test check suite fix soak clean
.DELETE_ON_ERROR:

demo: .venv/installed
	$(BIN)/makespan solve $(SAMPLE) --block 256 --gantt vecadd.png

test: .venv/developing
	$(MAKE) --jobs=2 check suite # mypy keeps one core busy for minutes

suite: .venv/developing
	$(BIN)/pytest -n auto

check: .venv/developing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: .venv/developing
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: .venv/developing
	$(BIN)/pytest -n auto -m soak -o addopts="" --import-mode=importlib -s tests

clean:
	rm -rf .venv dist

.venv/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "makespan needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/pip pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/makespan doctor # compiles the inner loops once and keeps them
	touch $@

.venv/developing: .venv/installed pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --group dev
	touch $@
