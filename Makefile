# Every target does its own set-up; only Python 3.11 or later has to be installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Only what is imported gets compiled: that saves half the time of an installation.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt
DESK := examples/adk/recordings/support_desk

BROWSER = $(shell command -v "$${BATON_CHROMIUM:-chromium}")
POSTGRES = $(wildcard /usr/lib/postgresql/*/bin/initdb)$(shell command -v initdb)
APT := $(if $(filter 0,$(shell id -u)),,sudo )apt-get -qq
# Keep compiled modules: otherwise each process that a test starts compiles Baton again (a second),
# and the tests take twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-adk demo-guard demo-live demo-feed demo-improve demo-web test test-heavy first-hour torture browser postgres check format bench bench-server phoenix blame docs accuracy house schemas assets frameworks clean

help: ## List the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.adk: $(VENV)/.dev
	$(PIP) --editable '.[dev,adk]'
	@touch $@

$(VENV)/.claude: $(VENV)/.dev
	$(PIP) --editable '.[dev,claude]'
	@touch $@

$(VENV)/.live: $(VENV)/.dev
	$(PIP) --editable '.[dev,frameworks]'
	@touch $@

$(VENV)/.heavy: $(VENV)/.dev
	$(PIP) --editable '.[dev,adk,claude,docs,ray,heavy,frameworks]'
	@touch $@ $(addprefix $(VENV)/.,adk claude docs live)  # it has their packages, too

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) --editable '.[dev,docs]'
	@touch $@

demo: $(VENV)/.core ## Show and score real answers of an ADK server; one run went wrong.
	$(BIN)/baton show $(DESK)/wrong_specialist.session.json
	@echo
	$(BIN)/baton score $(DESK)/refund.sse $(DESK)/weather_then_refund.sse $(DESK)/policy.sse \
	  $(DESK)/wrong_specialist.sse examples/adk/recordings/report_pipeline/report.sse \
	  --agents examples/adk/recordings/app_info.support_desk.json --config examples/adk/baton.yaml \
	  ; code=$$?; echo "exit code $$code"; test $$code -eq 1

demo-adk: $(VENV)/.adk ## Start an ADK server with scripted agents and evaluate them live.
	$(BIN)/python examples/adk/demo.py

demo-guard: $(VENV)/.core ## Hold runaway agents and a leaky one to a policy, and try it on recordings; offline.
	$(BIN)/python examples/guard/demo.py

demo-live: $(VENV)/.live ## Start a server; programs of four kinds send to it, and an alert opens.
	$(BIN)/python examples/live/demo.py

demo-feed: $(VENV)/.dev ## A day of traffic: issues are found; one is investigated, fixed, proven, and tested from then on.
	$(BIN)/python examples/feed/demo.py

demo-improve: $(VENV)/.dev ## Prompts of three agents get better, one after the other, proven on held-out cases; offline.
	$(BIN)/python examples/improve/demo.py

demo-web: $(VENV)/.dev ## Start a server with real recordings of seven frameworks, and print where its pages are.
	$(BIN)/python examples/live/web.py

# A test that hangs fails by its name; without this, it would hang CI.
PYTEST := $(BIN)/pytest -q --timeout 300

# With `worksteal` one process runs the tests of a file, so that it imports and reads data once.
# Three processes on two cores, because tests wait for timers and processes a sixth of the time.
test: $(VENV)/.dev ## Run the tests (under 6 minutes on two cores).
	$(PYTEST) -n 3 --dist worksteal -m 'not heavy'

# By file, so that tests share a server, a browser or an SDK. Five processes on two cores, because
# these tests wait for other programs a fifth of the time.
test-heavy: ## Run the tests that need a real server, SDK or browser, or much time.
	@$(MAKE) --jobs 3 --no-print-directory $(VENV)/.heavy browser postgres
	$(PYTEST) -n 5 --dist loadfile --no-loadscope-reorder -m heavy

first-hour: ## Run each example with a framework like a newcomer, in its own venv; takes minutes.
	$(PYTHON) tests/heavy/first_hour.py

SHARE ?= 1
# The first two use both cores, the others one each.
torture: $(VENV)/.claude postgres ## A million broken inputs, all properties, seeded faults, hundreds of kills, injections, replays; SHARE=0.1 for a tenth.
	$(BIN)/python -m tests.torture.fuzz --share $(SHARE)
	BATON_FUZZ_SHARE=$(SHARE) $(PYTEST) -n 2 tests/fuzz
	$(MAKE) --jobs 2 --output-sync=target $(ON_ONE_CORE)

ON_ONE_CORE := tests.torture.injections tests.torture.kills tests.torture.server_kills \
  tests.evaluators.judged.test_distilled tests.torture.server_fuzz tests.torture.charges \
  tests.torture.accuracy_tables tests.stats.test_sequential
.PHONY: $(ON_ONE_CORE)
$(ON_ONE_CORE):
	$(BIN)/python -m $@ --share $(SHARE)

browser: ## Install Chromium with apt, if it is missing.
	@test -n "$(BROWSER)" || $(APT) update
	@test -n "$(BROWSER)" || DEBIAN_FRONTEND=noninteractive $(APT) install --no-install-recommends \
	  chromium fonts-liberation

postgres: ## Install PostgreSQL with apt, if it is missing.
	@test -n "$(POSTGRES)" || $(APT) update
	@test -n "$(POSTGRES)" || DEBIAN_FRONTEND=noninteractive $(APT) install --no-install-recommends \
	  postgresql

check: $(VENV)/.dev ## Lint, type-check, and check the layers of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry .

format: $(VENV)/.dev ## Format the code.
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

bench: $(VENV)/.dev ## Measure start-up, speed, memory and judges against the aims.
	$(BIN)/python benchmarks/run.py

bench-server: $(VENV)/.dev postgres ## Measure `baton serve` against its aims; FULL=--full with the full amounts.
	$(BIN)/python benchmarks/server.py $(FULL) $(if $(PHOENIX),--phoenix $(PHOENIX))

# Its licence is the Elastic License 2.0, so it has its own environment; Baton does not need it.
phoenix: $(VENV)/.dev ## Install Arize Phoenix separately, for `make bench-server PHOENIX=.venv/phoenix/bin/phoenix`.
	test -x $(VENV)/phoenix/bin/python || $(PYTHON) -m venv $(VENV)/phoenix
	$(VENV)/phoenix/bin/python -m pip --disable-pip-version-check install --quiet arize-phoenix

docs: $(VENV)/.docs ## Build the docs site into .site/html; fails for a broken link or an unknown page.
	$(BIN)/python -m tests.docs.site

blame: $(VENV)/.dev ## Measure blame on seeded faults; DATA=FOLDER: on public failed runs, compared with floors; JUDGE=PROVIDER:NAME: with a judge.
	cd benchmarks && ../$(BIN)/python blame.py $(abspath $(DATA)) $(if $(JUDGE),--judge $(JUDGE))

accuracy: $(VENV)/.dev ## Seed faults into good traces, and write which evaluators find them into docs/accuracy.md.
	cd benchmarks && ../$(BIN)/python -m accuracy --write

house: $(VENV)/.dev ## Print the size of the source: modules, lines, and the path of one score.
	$(BIN)/python -m tests.house

schemas: $(VENV)/.dev ## Write JSON Schemas and the reference of options from the types.
	$(BIN)/python -m baton.schemas docs/schemas
	$(BIN)/python -m tests.docs.options --write
	$(BIN)/python -m tests.docs.reference --write

assets: $(VENV)/.dev ## Fetch the pinned third-party scripts of the web pages; needs npm.
	$(BIN)/python -m tests.web.vendor

frameworks: $(VENV)/.core ## Write the table of docs/frameworks.md from the recorded runs.
	$(BIN)/python -m tests.docs.table --write

clean: ## Remove the environment and all caches.
	rm -rf $(VENV) .site .pytest_cache .mypy_cache .ruff_cache .hypothesis .baton
