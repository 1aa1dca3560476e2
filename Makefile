# Two commands are enough: `make workbook` opens the pages, `make test` runs every check.
PYTHON ?= python3
PORT ?= 2718
VENV := .venv
BIN := $(VENV)/bin
# Only errors: marimo warns that it ignores `tool.marimo.opengraph`, and takes the cards' titles from there all the same.
MARIMO := $(BIN)/marimo --log-level ERROR

.PHONY: workbook test site screenshots clean
.DEFAULT_GOAL := workbook

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/workbook.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/site.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[site]'
	@touch $@ $(VENV)/workbook.stamp

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@ $(VENV)/workbook.stamp $(VENV)/site.stamp

# HEADLESS=1 opens no browser. The token, which is in the address that opens, keeps the pages of others out: marimo lets
# a page from anywhere connect to its socket. A session ends ten seconds after its page was closed, not after marimo's
# two minutes: each takes 1 to 10 MB until then. One arena for the threads of all sessions keeps fewer holes between them.
# scripts/sessions_check.py measures both.
workbook: export MALLOC_ARENA_MAX = 1
workbook: $(VENV)/workbook.stamp
	$(MARIMO) run notebooks --host 127.0.0.1 --port $(PORT) --token --session-ttl 10 $(if $(HEADLESS),--headless)

test: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MARIMO) check --strict notebooks
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Every page as files in site/, for any web server and without a network: see scripts/build_site.py.
site: $(VENV)/site.stamp
	$(BIN)/python scripts/build_site.py site

# The pictures of the README, in docs/images/, and of the cards in the gallery; needs Chromium.
screenshots: $(VENV)/test.stamp
	$(BIN)/python scripts/screenshots.py

clean:
	rm -rf $(VENV)
