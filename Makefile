# The same few targets here and in CI. `make` or `make help` lists them; each that needs the environment makes it first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
BIN := .venv/bin
PARTS := sluicegate exporter rules runbooks automation dashboards drill
GENERATED := rules/generated dashboards/generated docs/runbooks docs/reference
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup drill test slow gate-rows mutate-lua scenarios torture torture-queue bench-queue bench-overload bench-exporter bench-webhook check generate pictures lock fresh clean docs

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv from requirements.lock and install the servers of a drill (Debian, root)
	@scripts/setup

drill: setup ## Run the main job on real parts; ARGS="--profile fast --scenario NAME" goes to `sluicegate drill`
	@$(BIN)/python -m sluicegate drill $(ARGS)

test: setup ## Run the tests; PYTEST_ARGS="-k word" goes to pytest
	@scripts/test "not slow" $(PYTEST_ARGS)

slow: setup ## Run the tests that are too long for `make test`: every scenario on every server, kills at every phase
	@scripts/test "slow" $(PYTEST_ARGS)

gate-rows: setup ## Run every row of the gate's table through the functions, on both servers (minutes); `make test` takes a sample
	@GATE_ROWS=all $(BIN)/python -m pytest -q -n 2 tests/contract/test_gate_rows.py -k rows_end_as

mutate-lua: setup ## Change every condition of the Lua functions in turn and see whether a test notices; ARGS="--file admit --sample 50"
	@$(BIN)/python -m tests.mutation $(ARGS)

scenarios: setup ## Run every scenario of the drill, fast, on Redis and on Valkey (about 20 minutes)
	@scripts/test "slow" tests/e2e/test_drill_scenarios.py $(PYTEST_ARGS)

check: setup ## Check format, lint, types, import directions, generated files and the wheel
	@$(BIN)/ruff format --check --quiet . || { echo "\`.venv/bin/ruff format .\` puts this right."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache | tail -n 8
	@$(MAKE) --no-print-directory generate
	@git diff --exit-code -- $(GENERATED) || { echo "Generated files are not up to date: commit what \`make generate\` writes."; exit 1; }
	@test -z "$$(git ls-files --others --exclude-standard -- $(GENERATED))" || { echo "\`make generate\` writes files that are not in git."; exit 1; }
	@$(BIN)/python -m pytest -q tests/contract/test_wheel.py
	@echo "check: all is well"

generate: setup ## Write everything generated anew: rules, dashboards, the pages of runbooks, and the reference
	@$(BIN)/python -m sluicegate rules generate
	@$(BIN)/python -m sluicegate dashboards generate
	@$(BIN)/python -m sluicegate rules lints > docs/reference/lints.md
	@$(BIN)/python -m sluicegate exporter reference > docs/reference/metrics.md
	@$(BIN)/python -m sluicegate.command_reference > docs/reference/commands.md
	@$(BIN)/python -m sluicegate.settings_reference > docs/reference/settings.md
	@$(BIN)/python -m runbooks.reference > docs/reference/runbooks.md
	@$(BIN)/python -m sluicegate queue openapi > docs/reference/openapi.json
	@for file in runbooks/*.yaml; do \
	  name=$$(basename $$file .yaml); \
	  $(BIN)/python -m sluicegate runbooks docs $$name --out docs/runbooks/$$name.md; \
	done

pictures: setup ## Draw the docs' dashboards and backtest with a drill's data, in headless Chromium; ARGS="--profile fast"
	@$(BIN)/python -m drill.pictures $(ARGS)

torture: setup ## Kill and stop executors, Redis and messengers under 200 runs on 10 queues, then judge their journals (5 minutes); ARGS="--seed 7"
	@$(BIN)/python -m sluicegate drill torture-runs $(ARGS)

torture-queue: setup ## Kill workers and Redis under 10,000 jobs, then judge the logs (5 minutes); ARGS="--appendfsync everysec --seed 7"
	@$(BIN)/python -m sluicegate drill torture $(ARGS)

bench-queue: setup ## Measure the queue beside redis-py and seven other queues, about 8 minutes; ARGS=--short takes a look of 2
	@$(BIN)/python -m bench.queue_bench $(ARGS)

bench-overload: setup ## Measure five ways to admit at 2×, 4× and 8× capacity and in bursts, about 24 minutes; ARGS=--short
	@$(BIN)/python -m bench.overload_bench $(ARGS)

bench-exporter: setup ## Measure the exporter at up to 1 M pending jobs beside others, and write bench-results/exporter.json; ARGS="--short"
	@$(BIN)/python -m bench.exporter_bench $(ARGS)

bench-webhook: setup ## Measure the webhook: 1,000-alert bodies, posts/s beside a bare app, and how soon it closes a gate; ARGS=--short
	@$(BIN)/python -m bench.webhook_bench $(ARGS)

docs: setup ## Write the documentation as a site to site/; ARGS=serve shows it while you write
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --strict --quiet)

lock: ## Resolve pyproject.toml into requirements.lock; ARGS=--upgrade takes newer versions
	@scripts/lock $(ARGS)

fresh: ## Prove HEAD on a minimal Debian 12 (root): make test and a fast drill; PORTS_TAKEN=1, TWICE=1
	@scripts/fresh

clean: ## Remove the environment, the caches and what drills left
	rm -rf site .venv .setup .bench-cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build
	find $(PARTS) tests -name __pycache__ -type d -prune -exec rm -rf {} +
