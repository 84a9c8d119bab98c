# Every target works from a clean clone: it makes .venv once and reuses it. Python, pip, make and a package index are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt
SPEC   := pyproject.toml constraints.txt
# a process for each core, a file of tests to each in turn; more than four gain little, and each holds torch in memory
SHARED := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo install test test-fast smoke check lint types docs ray pages docs-serve bench clean
# compiled files are kept, whatever the shell says: every process of the tests would compile the house and the tests anew
export PYTHONDONTWRITEBYTECODE :=

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.made:
	@echo "equisep: making a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info[:2] < (3, 14); sys.exit(0 if ok else f"equisep needs Python 3.11 to 3.13; $(PYTHON) is {sys.version.split()[0]}. Set PYTHON=python3.12, say.")'
	@$(PYTHON) -m venv $(VENV) && touch $@

$(VENV)/.run: $(VENV)/.made $(SPEC)
	@echo "equisep: installing the run-time packages (torch is large: a minute or two the first time)"
	@$(PIP) -e . && touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "equisep: installing the development packages"
	@$(PIP) -e ".[dev]" && touch $@

demo: $(VENV)/.run  ## train the 8-layer network of Fig. 1 on the embedded data and show the law
	@echo "equisep: running the demo"
	@$(BIN)/equisep demo --out equisep-demo --force
	@echo "equisep: the command is $(BIN)/equisep; activate $(VENV) to call it by name"

install: $(VENV)/.dev  ## set up everything for development
	@echo "equisep: ready; the command is $(BIN)/equisep"

# a Ray cluster wants a process of its own and waits more than it computes: meanwhile the checks and one long file are run
RAY   := tests/runs/test_ray_cluster.py
PAGES := tests/test_docs_run.py
test: $(VENV)/.dev  ## checks, then all tests
	@$(MAKE) --no-print-directory -j2 --output-sync=target ray types pages docs lint
	@echo "equisep: running the tests"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED) --ignore=$(RAY) --ignore=$(PAGES) --durations=40 --durations-min=2 $(ARGS)

ray pages: $(VENV)/.dev
ray:
	@echo "equisep: running the tests of a Ray cluster"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(RAY)
pages:
	@echo "equisep: running README.md and the pages of docs"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PAGES)

FAST := $(addprefix tests/,test_house.py separation law results taps peeled compare figures properties measuring/test_measure_numbers.py measuring/test_measure_defaults.py)
test-fast: $(VENV)/.dev  ## what guards the numbers and the house, for daily work
	@echo "equisep: running the fast tests"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED) $(FAST) -m "not smoke and not slow" $(ARGS)

smoke: $(VENV)/.dev  ## every figure of the papers at smoke scale, which the tests run one of for each runner
	@echo "equisep: running all figures at smoke scale"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal tests/runs/test_smoke_figures.py -m "smoke or not smoke" $(ARGS)

# side by side, each with its words together; mypy alone takes half a minute
check: $(VENV)/.dev  ## ruff, mypy strict, import direction, the documentation site
	@$(MAKE) --no-print-directory -j2 --output-sync=target types docs lint

lint types: $(VENV)/.dev
lint:
	@echo "equisep: ruff, import direction"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m pytest -q tests/test_house.py -k import
types:
	@echo "equisep: mypy"
	@$(BIN)/mypy

# without a word about the makers' next product, which would stand above every build
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs
docs: $(VENV)/.dev  ## build the documentation site into site/; any broken link is an error
	@echo "equisep: building the documentation site"
	@$(MKDOCS) build --strict --quiet
	@echo "equisep: the site is site/index.html"

docs-serve: $(VENV)/.dev  ## show the documentation site on http://127.0.0.1:8000, built anew at every change
	@$(MKDOCS) serve

bench: $(VENV)/.dev  ## every benchmark; writes JSON named by device and versions into benchmarks/results
	@echo "equisep: running the benchmarks"
	@for file in benchmarks/[a-z]*.py; do echo "equisep: $$file"; $(BIN)/python $$file --save || exit 1; done

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build site
