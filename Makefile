# Every target does its own set-up; a machine needs Python 3.11+ and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo reproduce explore check test test-slow lint docs docs-fresh notebooks audit components build bench clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/run.stamp ## forecast a network, train it, and write a page of pictures
	$(BIN)/tiltmeter demo

reproduce: .venv/run.stamp ## run the short experiments of the laboratory and write a page of verdicts
	$(BIN)/tiltmeter reproduce --all

explore: .venv/run.stamp ## open the explorer in the browser, on the runs of a demo
	$(BIN)/tiltmeter explore runs --demo

check: .venv/dev.stamp lint ## formatting, types and the quick tests, in under a minute
	$(BIN)/pytest -n 2 -q tests/contracts/test_layers.py tests/test_names.py \
		tests/test_public_names.py tests/problem tests/population tests/recipe tests/predictions

test: .venv/dev.stamp lint ## everything that must be green; under 10 minutes on 2 cores
	$(BIN)/pytest -n 2 -q

test-slow: .venv/dev.stamp ## statistical, long and real-data checks
	$(BIN)/pytest -n 2 -q -m slow

lint: .venv/dev.stamp ## formatting, types and dead names
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python benchmarks/dead_names.py

docs: .venv/dev.stamp ## build the documentation offline; code blocks that changed are run
	$(BIN)/python docs/ext/outputs.py
	$(BIN)/sphinx-build -q -W -d docs/_build/doctrees -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

docs-fresh: notebooks ## run every code block and notebook of the documentation and store what they show
	$(BIN)/python docs/ext/outputs.py --all

notebooks: .venv/dev.stamp ## execute the notebooks of the gallery
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/notebooks.lock
	$(BIN)/python docs/draw/notebooks.py

audit: .venv/audit.stamp ## known vulnerabilities of everything that is pinned, torch among it (needs the network)
	for lock in requirements/*.lock; do \
		echo "$$lock"; \
		.venv/audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement $$lock || exit 1; \
	done

components: .venv/audit.stamp ## a list of all components for each of the two wheels
	mkdir -p dist
	.venv/audit/bin/cyclonedx-py requirements requirements/run.txt --output-reproducible -o dist/tiltmeter.cdx.json
	.venv/audit/bin/cyclonedx-py requirements requirements/lab.txt --output-reproducible -o dist/tiltmeter_lab.cdx.json

build: .venv/dev.stamp components ## wheel and sdist; the same bytes from the same sources
	SOURCE_DATE_EPOCH=1767225600 $(BIN)/python -m hatchling build -d dist
	cd lab && SOURCE_DATE_EPOCH=1767225600 ../$(BIN)/python -m hatchling build -d ../dist

bench: .venv/dev.stamp ## ratios of two things measured in one run
	$(BIN)/tiltmeter bench

.venv/bin/python:
	$(PYTHON) -m venv .venv

# First everything with checksums, then what has none: torch, whose builds differ from machine to machine.
.venv/run.stamp: requirements/run.txt requirements/run.lock pyproject.toml lab/pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/run.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable . --editable lab
	@touch $@

# The tools of the audit, with checksums, in an environment of their own.
.venv/audit.stamp: requirements/audit.lock | .venv/bin/python
	$(PYTHON) -m venv .venv/audit
	.venv/audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/audit.lock
	@touch $@

.venv/dev.stamp: requirements/dev.txt requirements/dev.lock .venv/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

clean: ## remove everything that was installed or built
	rm -rf .venv docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
