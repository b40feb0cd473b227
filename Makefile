# Every target does its own set-up; a machine needs Python 3.11+ and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow lint docs bench clean

demo: .venv/run.stamp
	$(BIN)/tiltmeter demo

test: .venv/dev.stamp lint
	$(BIN)/pytest -n 2 -q

test-slow: .venv/dev.stamp
	$(BIN)/pytest -n 2 -q -m slow

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/dev.stamp
	$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: .venv/dev.stamp
	$(BIN)/tiltmeter bench

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: requirements/run.txt pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/dev.stamp: requirements/dev.txt .venv/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

clean:
	rm -rf .venv docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
