# Two commands on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.

PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE # the tests start many processes, each of which would compile what it imports
BIN := .venv/bin
SAMPLE := ptx/vecadd.ptx

.PHONY: demo test check suite fix soak site links wheel clean
.DELETE_ON_ERROR:

demo: .venv/installed # what it asks is small enough to need no compiled loop
	$(BIN)/makespan solve $(SAMPLE) --block 256 --gantt vecadd.png

test: .venv/installed
	$(MAKE) --jobs=2 check suite # types are checked while the inner loops compile: each keeps one core busy

suite: .venv/developing .venv/compiled
	$(BIN)/pytest -n auto

check: .venv/developing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: .venv/developing
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: .venv/developing .venv/compiled
	$(BIN)/pytest -n auto -m soak -o addopts="" --import-mode=importlib -s tests

site: .venv/developing .venv/compiled # with its notebooks as they run; open build/site/index.html
	$(BIN)/sphinx-build -q -W --keep-going -D execute=1 -c docs/site . build/site

links: .venv/developing # asks the network whether what pages link to is still there
	$(BIN)/sphinx-build -b linkcheck -c docs/site . build/links

# Builds both archives, and runs the documentation with the wheel alone, where there is no source beside it, with this PYTHON.
wheel: .venv/developing
	rm -rf dist && mkdir -p dist/apart
	$(BIN)/hatchling build -d dist
	tar -xzf dist/*.tar.gz -C dist/apart --strip-components=1
	rm -r dist/apart/makespan
	$(PYTHON) -m venv dist/venv
	dist/venv/bin/pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[sass]" pytest hypothesis jsonschema
	cd dist/apart && ../venv/bin/pytest tests/test_docs.py tests/test_examples.py tests/test_package.py

clean:
	rm -rf .venv dist build

.venv/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "makespan needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/pip pyproject.toml
	@echo "installing makespan and what it needs into .venv: 170 MB to download, 550 MB on disk, a minute or more"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable . # bytecode comes with first use
	touch $@

.venv/compiled: .venv/installed
	$(BIN)/makespan doctor # compiles the inner loops once and keeps them
	touch $@

.venv/developing: .venv/installed pyproject.toml
	@echo "installing what tests and checks need: another 500 MB"
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" # knows groups
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --group dev
	touch $@
