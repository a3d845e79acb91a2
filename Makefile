# Everything runs in .venv, which the first call creates and later calls leave alone.
# TORCH=2.15.0 uses an environment of its own, .venv-torch-2.15.0, with that torch instead of the pinned one.
PYTHON ?= python3
ifdef TORCH
VENV := .venv-torch-$(TORCH)
else
VENV := .venv
endif
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help tour test test-slow test-exhaustive test-python-method check check-frontend docs frontend screenshots bench bench-solver results clean

help:  ## Show this list.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 22

# The editable installation builds the native library too, so its sources count.
$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard src/nonsmooth/native/*.[ch])
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip --upgrade >/dev/null  # uv makes them without
ifdef TORCH
	@sed '/^torch==/d' constraints.txt > $(VENV)/constraints.txt && echo 'torch==$(TORCH)' >> $(VENV)/constraints.txt
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/constraints.txt --editable '.[dev,docs,qp,proxqp,plot]'
else
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs,qp,proxqp,plot]'
endif
	@touch $(READY)

tour: $(READY)  ## The guided tour: what torch.compile does on this machine, and a report of it (a few minutes).
	$(BIN)/python -m compile_inspect tour

# Two processes share the tests, file by file. Each computes with one thread: two that wait for each other on a busy core
# take milliseconds for every loop.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

test: $(READY)  ## Run the tests (a few minutes).
	$(TEST)

test-slow: $(READY)  ## Run the tests that take longer too, as CI does.
	$(TEST) -m 'not exhaustive and not gpu and not docs'

test-exhaustive: $(READY)  ## Run the longest tests, as before a release (an hour or more).
	$(TEST) -m 'exhaustive and not gpu and not docs'

test-python-method: $(READY)  ## Run the solver's tests without the native library (two minutes).
	NONSMOOTH_NATIVE=0 $(TEST) tests/nonsmooth

# The pages are shared one by one: each is a test of its own.
docs: $(READY)  ## Build the documentation into site/, and run every block of its pages.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # --quiet would hide warnings from --strict too
	$(TEST) --dist worksteal -m docs tests/docs

check: $(READY)  ## Lint and type-check.
	$(BIN)/ruff check hatch_build.py src tests benchmarks examples
	$(BIN)/ruff format --check hatch_build.py src tests benchmarks examples
	$(BIN)/mypy

frontend: frontend/node_modules/.ready  ## Build the page of reports into the package (needs Node).
	cd frontend && npm run --silent build

check-frontend: frontend/node_modules/.ready  ## Type-check and test the front end, and see that what is shipped is its build.
	cd frontend && npm run --silent check && npm test --silent && node build.mjs --check

frontend/node_modules/.ready: frontend/package.json frontend/package-lock.json
	cd frontend && npm ci --silent --ignore-scripts
	@touch $@

screenshots: $(READY)  ## Take the pictures of the report in README and docs anew (needs Chromium).
	$(BIN)/python docs/take_screenshots.py

bench: $(READY)  ## Measure what recording costs (about 20 minutes).
	$(BIN)/python benchmarks/recorder_overhead.py
	$(BIN)/python benchmarks/recorder_scale.py --rounds 1

bench-solver: $(READY)  ## Measure the solver (minutes); peers only with PYGRANSO_PYTHON=… and NCOPT_PYTHON=….
	$(BIN)/python benchmarks/solver_quality.py

results: $(READY)  ## Write the pages that show measurements, from the files in benchmarks/results.
	$(BIN)/python benchmarks/render_results.py

clean:  ## Remove the environments and the built documentation.
	rm -rf .venv .venv-torch-* site
