# Everything runs in a local virtual environment; PYTHON picks the interpreter that makes it.
PYTHON ?= python3
BIN := .venv/bin
# Packages of npm stay outside of the repository.
SDK_JS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pascal-engine/sdk-js

.PHONY: help setup check test sdk-js fuzz-api demo gauntlet clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/ready ## make the virtual environment

NATIVE := engine/native/CMakeLists.txt $(wildcard engine/native/*.cpp engine/native/*.hpp engine/native/*.inl)

.venv/ready: pyproject.toml $(NATIVE)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

check: setup ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup ## all tests
	$(BIN)/pytest

sdk-js: setup ## the engine against the OpenAI client for JavaScript; needs npm
	mkdir -p $(SDK_JS)
	cp tests/sdk_js/package.json $(SDK_JS)
	npm install --silent --no-audit --no-fund --prefix $(SDK_JS)
	NODE_PATH=$(SDK_JS)/node_modules $(BIN)/pytest tests/engine/test_engine_chat_sdk_js.py

fuzz-api: setup ## 5,000 made-up requests to the engine: none may be answered with a 5xx
	$(BIN)/python -m tests.engine.fuzz_api

demo: setup ## engine + router + two prompts, from nothing
	$(BIN)/decomp-router demo

gauntlet: setup ## score the shipped decomposer on the shipped sets
	$(BIN)/decomp-router gauntlet run

clean: ## remove what was made
	rm -rf .venv .cache
