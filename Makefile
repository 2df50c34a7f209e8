# One entry for people and for continuous integration. Everything is created inside the checkout (.venv, .cache) by
# .ci/setup, which is quick when there is nothing to do. Written for GNU make 3.81 (macOS) and a POSIX shell.
SHELL := /bin/sh
BIN   := .venv/bin
UV_CACHE_DIR ?= $(CURDIR)/.cache/uv
export UV_CACHE_DIR
# Without these files each process compiles again all that it imports, and pytest rewrites each assertion.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-all nightly coverage test-page test-images test-cluster test-qbeast
.PHONY: stress copies interop jepsen soak chaos load mutants test-attacks fuzz bench minio helm osv-scanner iceberg
.PHONY: pictures page-api size sbom scan fmt lock clean distclean

help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-zA-Z %-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  suites: $(SUITES) page images cluster qbeast attacks"
	@echo "  benches: $(BENCHES)"
	@echo "  settings: ARGS='arguments'  JSON=file for figures  SECONDS_=n  EXAMPLES=n  SEED=n  ONLY=regex  PYTHON=python3.12"

setup: ## virtual environment, locked packages, Java where none fits, Spark's jars; quick the second time
	@PYTHON="$(PYTHON)" sh .ci/setup

demo: setup ## embedded Redis, decider and actor on a table that gets small commits: see it work
	@$(BIN)/python -m services.demo $(if $(JSON),--json $(JSON)) $(ARGS)

check: setup ## formatting, lint, types of Python and of the page, import laws; no tests
	@echo "[check] ruff";        $(BIN)/ruff check --quiet .
	@echo "[check] ruff format"; $(BIN)/ruff format --quiet --check .
	@echo "[check] mypy";        $(BIN)/mypy --no-error-summary
	@echo "[check] page";         $(BIN)/python page/build.py check
	@echo "[check] lint-imports"; out=$$($(BIN)/lint-imports 2>&1) || { echo "$$out"; exit 1; }

# Units and properties, the contracts that need no JVM and one that does, the flows of integration, and the page.
QUICK := tests/unit tests/property tests/contract tests/page $(wildcard $(patsubst %,tests/integration/test_%.py, \
	archive cli follow http_end_to_end http_queue http_tables registry_entries stream table_intake table_jobs worker))
TEST.quick := -m "quick or not (spark or e2e or s3)" $(QUICK)
PYTEST := $(BIN)/pytest --dist loadgroup --durations-min=1

test: check ## the checks, and the tests of a few minutes (ARGS="tests/unit -x": tests that you name)
	@$(BIN)/python page/build.py test
	@LAKEWRIGHT_HYPOTHESIS_PROFILE=dev LAKEWRIGHT_STRESS_EXAMPLES=50 \
		$(if $(ARGS),,LAKEWRIGHT_TEST_SECONDS=.cache/test-seconds) $(PYTEST) -n 3 --durations=10 \
		$(if $(findstring tests/,$(ARGS)),,$(TEST.quick)) $(ARGS)

# The long suites that say whether rows, events or jobs are lost. They run with all other tests, as one suite: they wait
# for services and JVMs, which the others need not, and load Spark once. The core is measured beside them.
LONG := crashes contracts s3
# What the tests of rigs keep right says nothing of the product: they run nightly.
RIGS := tests/soak tests/iceberg_stress tests/interop tests/jepsen

test-all: setup ## what CI runs: each test once, but for the suites of hours; what fails does not keep others from running
	@$(BIN)/python -m tests.support.go_programs minio || true
	@mkdir -p .cache; $(MAKE) --no-print-directory coverage PROCESSES=1 >.cache/core.log 2>&1 & beside=$$!; failed=; \
		$(MAKE) --no-print-directory check || failed="$$failed check"; \
		$(BIN)/python page/build.py test || failed="$$failed page"; \
		$(PYTEST) -n 3 --durations=40 $(LONG:%=--long %) $(patsubst %,--ignore=%,$(CORE) $(RIGS)) $(ARGS) || \
			$(BIN)/python -m tests.support.second_try $(LONG:%=--long %) || failed="$$failed tests"; \
		wait $$beside || failed="$$failed coverage"; cat .cache/core.log; \
		if [ -n "$$failed" ]; then echo "[test-all] failed:$$failed"; exit 1; fi

# The tests of the core: what lies beside it, and the suites that hold its laws, with one seed: a branch that only some
# seeds take needs a test of its own. In CI they run here alone.
CORE := tests/unit/shared tests/unit/actor tests/unit/decider/decide tests/unit/decider/state tests/property \
	tests/contract/test_actions.py tests/contract/test_table_actions.py $(wildcard tests/contract/test_queue_*.py)

coverage: setup ## the tests of the core, and its branch coverage, which must be complete; no Spark (HTML=folder)
	@rm -f .cache/coverage .cache/coverage.*
	@$(BIN)/python -m pytest -q -p tests.support.core_coverage -o cache_dir=.cache/pytest-core \
		-n $(or $(PROCESSES),2) --dist loadgroup --hypothesis-seed=0 --durations=10 --durations-min=1 $(CORE) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(if $(JSON),$(BIN)/coverage json --quiet --fail-under=0 -o $(JSON))
	@$(if $(HTML),$(BIN)/coverage html --quiet --fail-under=0 -d $(HTML))
	@$(BIN)/coverage report

# What each suite adds to pytest, and what it fetches or builds before.
SUITES := crashes contracts s3 altered rigs iceberg kafka properties promises proofread care spark-cluster
SUITE.crashes := -n 2 --dist loadgroup --long crashes --durations=5 --durations-min=1 -m long
SUITE.contracts := -n 2 --dist loadgroup --long contracts --durations=5 --durations-min=1 -m long
SUITE.s3 := --long s3 --durations=5 --durations-min=1 -m s3
SUITE.altered := --long altered --durations=5 --durations-min=1 -m long
SUITE.rigs := -n 2 --dist loadgroup $(RIGS)
BEFORE.s3 := tests.support.go_programs minio
SUITE.iceberg := --long iceberg --durations=5 --durations-min=1 -k iceberg
BEFORE.iceberg := tests.support.iceberg_server
SUITE.kafka := --long kafka -q -s tests/integration/test_kafka_broker.py
BEFORE.kafka := tests.support.kafka_broker
SUITE.care := --long care --timeout=0 -q -s -m long
BEFORE.care := tests.support.go_programs minio
SUITE.properties := -n 2 --timeout=0 tests/property
ENV.properties := LAKEWRIGHT_HYPOTHESIS_PROFILE=nightly
SUITE.promises := -n 2 --dist loadgroup --long contracts --long care --timeout=0 tests/property/test_window_traces.py tests/contract/test_queue_windows.py \
	tests/property/test_budget_traces.py tests/contract/test_queue_budgets.py tests/integration/test_budgets_of_tables.py \
	tests/unit/shared/policy/test_budgets.py \
	tests/unit/shared/policy/test_work_windows.py \
	tests/unit/shared/test_prices.py tests/unit/services/cli/test_mcp_tools.py tests/integration/test_mcp.py \
	tests/contract/test_queue_capacity.py tests/integration/test_background_load.py tests/unit/services/test_machine_load.py \
	tests/unit/shared/policy/test_row_expiry.py tests/unit/actor/formats/delta/test_expire.py \
	tests/unit/actor/formats/iceberg/test_iceberg_expire.py tests/contract/test_row_expiry.py \
	tests/contract/test_row_expiry_on_iceberg.py tests/contract/test_row_expiry_on_delta.py tests/unit/actor/proofread/test_over_rows.py
ENV.promises = LAKEWRIGHT_PROMISE_TRACES=$(or $(EXAMPLES),1000)
SUITE.proofread := --timeout=0 -q -s tests/property/test_proofreading.py
ENV.proofread = LAKEWRIGHT_PROOFREAD_EXAMPLES=$(or $(EXAMPLES),1000) LAKEWRIGHT_PROOFREAD_SEED=$(or $(SEED),1)
SUITE.spark-cluster := --long spark-cluster --timeout=0 -q -s tests/spark_cluster

# Every suite that CI does not run, and every bench. What fails, or has no end, does not keep the others from running.
NIGHTLY = test-all $(patsubst %,test-%,$(filter-out $(LONG),$(SUITES)) page qbeast attacks images cluster) \
	coverage scan copies interop jepsen mutants stress load chaos soak $(BENCHES:%=bench-%)
COUNTS := [0-9]+ (failed|passed|skipped|error|errors|deselected)

nightly: setup ## all suites and benches, and one report, into artifacts/everything (TO=folder, ONLY=regex); a day
	@to=$(or $(TO),artifacts/everything); mkdir -p $$to; limit=$$(command -v timeout >/dev/null && echo timeout 3h); status=0; \
		printf '| target | exit code | seconds | tests |\n|---|---|---|---|\n' >$$to/report.md; \
		for target in $(NIGHTLY); do echo $$target | grep -qE '$(or $(ONLY),.)' || continue; began=$$(date +%s); \
			$$limit $(MAKE) --no-print-directory $$target ONLY= JSON=$$to/$$target.json >$$to/$$target.log 2>&1; code=$$?; \
			counts=$$(grep -E '$(COUNTS).* in [0-9]' $$to/$$target.log | tail -n 1 | grep -oE '$(COUNTS)' | paste -sd , -); \
			echo "| $$target | $$code | $$(($$(date +%s) - began)) | $$counts |" | tee -a $$to/report.md; \
			[ $$code = 0 ] || status=1; done; exit $$status

test-%: setup ## one suite of long tests
	@$(if $(SUITE.$*),,$(error there is no suite $*: take one of $(SUITES)))
	@$(if $(BEFORE.$*),$(BIN)/python -m $(BEFORE.$*))
	@$(ENV.$*) $(BIN)/pytest $(SUITE.$*) $(ARGS)

test-page: check # the page: unit tests, and all tests in a real browser, those of 100,000 tables included
	@$(BIN)/python page/build.py test
	@LAKEWRIGHT_PACKAGED_BROWSER=true $(BIN)/pytest --long page -q -s tests/page $(ARGS)

test-images: setup # build the images and run them as compose.yaml says; needs Docker (PYTHON_IMAGE, REDIS_IMAGE: other bases)
	@LAKEWRIGHT_TOKEN=not-used-for-building docker compose build
	@$(BIN)/pytest --long images tests/e2e/test_images.py $(ARGS)

test-cluster: helm minio # the chart on a real Kubernetes of one and two nodes; needs Linux, root, Debian's APT and Go
	@$(BIN)/python -m tests.support.go_programs kube-router
	@$(BIN)/python -m tests.cluster.programs
	@$(BIN)/pytest --long cluster -q -s tests/cluster $(ARGS)

test-qbeast: setup # Qbeast: the laws on 1,000 simulated indexes (EXAMPLES=n)
	@LAKEWRIGHT_QBEAST_EXAMPLES=$(or $(EXAMPLES),1000) $(BIN)/pytest --timeout=0 -q tests/property/test_qbeast_index.py \
		tests/property/test_qbeast_sampling.py $(ARGS)

stress: setup ## 5,000 random lives of the queue instead of 100 (EXAMPLES=n for another number)
	@LAKEWRIGHT_STRESS_EXAMPLES=$(or $(EXAMPLES),5000) $(BIN)/pytest --timeout=0 tests/property/test_queue_machine.py $(ARGS)

copies: setup ## copies of row groups: 200 random tables, all contract tests with copying forced
	@LAKEWRIGHT_COPY_EXAMPLES=$(or $(EXAMPLES),200) LAKEWRIGHT_COPY_SEED=$(or $(SEED),1) $(BIN)/pytest --long contracts --timeout=0 -q -s tests/contract/test_copied_and_encoded.py $(ARGS)
	@LAKEWRIGHT_TEST_ROW_GROUP_COPY=forced $(BIN)/pytest --long contracts --timeout=0 -q -s -m spark tests/contract $(ARGS)

# Engines whose versions the locked environment cannot hold as well live in one of their own; the hashes of versions
# that both hold are those of requirements.lock.
ENGINES := interop jepsen
engines = $(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .cache/$(1) && \
	.ci/shared-hashes tests/$(1)/engines.lock >.cache/$(1)/shared.lock && \
	$(BIN)/uv pip sync --quiet --python .cache/$(1)/bin/python --require-hashes tests/$(1)/engines.lock \
		--constraints .cache/$(1)/shared.lock

interop: setup ## every engine reads and writes tables that we rewrote (DOCS=page)
	@$(call engines,interop)
	@$(BIN)/python -m tests.interop $(if $(JSON),--json $(JSON)) $(if $(DOCS),--docs $(DOCS)) $(ARGS)

jepsen: setup ## other compactors beside writers, readers and faults: rows lost, revived, doubled, changed; half an hour
	@$(call engines,jepsen) || echo "[jepsen] without the rivals that need an environment of their own"
	@$(BIN)/python -m tests.jepsen $(if $(SECONDS_),--seconds $(SECONDS_)) $(if $(SEED),--seed $(SEED)) \
		$(if $(JSON),--json $(JSON)) $(if $(DOCS),--docs $(DOCS)) $(ARGS)

soak chaos load mutants test-attacks: setup ## writers, faults, load (ATTACKED=1: hostile clients too), changes of code
	@$(BIN)/python -m tests.$(@:test-%=%) $(if $(ONLY),--only '$(ONLY)') $(if $(SECONDS_),--seconds $(SECONDS_)) \
		$(if $(SEED),--seed $(SEED)) $(if $(ATTACKED),--attacked) $(if $(JSON),--json $(JSON)) $(ARGS)

fuzz: setup ## 10,000 damaged inputs of each kind: logs, events, tables files, catalogs' answers (INPUTS=n, SEED=n)
	@LAKEWRIGHT_FUZZ=$(or $(INPUTS),10000) LAKEWRIGHT_FUZZ_SEED=$(or $(SEED),1) $(BIN)/pytest --timeout=0 -q -s tests/property/test_hostile_bytes.py $(ARGS)

BENCHES := policy fleet netflix queue decide rebuild rewrite spark-cluster delta iceberg writers rivals read cells clustering capacity advice index

bench: setup ## every benchmark but the slowest two; JSON=b.json keeps b-policy.json, b-queue.json and so on
	@status=0; for part in $(filter-out capacity advice,$(BENCHES)); do echo "[bench] $$part"; \
		$(MAKE) --no-print-directory bench-$$part $(if $(JSON),JSON=$(basename $(JSON))-$$part.json) || status=1; done; exit $$status

bench-%: setup ## one benchmark
	@$(if $(filter $*,$(BENCHES)),,$(error there is no benchmark $*: take one of $(BENCHES)))
	@$(BIN)/python -m tests.bench.$(subst -,_,$*) $(if $(JSON),--json $(JSON)) $(ARGS)

RIVALS := fabric-200 risingwave olake autocomp

bench-rivals: setup # benchmarks that others have published, beside them: all, or NAME= one of RIVALS (DOCS=page)
	@status=0; for part in $(or $(NAME),$(RIVALS)); do \
		$(BIN)/python -m tests.bench.rivals $(if $(JSON),--json $(if $(NAME),$(JSON),$(basename $(JSON))-$$part.json)) \
			$(if $(DOCS),--docs $(DOCS)) $$part $(ARGS) || status=1; done; exit $$status

minio helm osv-scanner iceberg: setup ## build one of these once, where there is Go; without it the tests that need it are skipped
	@$(BIN)/python -m tests.support.go_programs $@

pictures: setup # pictures of every view of the page on a running demo, into artifacts/pictures (TO=folder)
	@$(BIN)/python -m tests.support.page_pictures $(or $(TO),artifacts/pictures)

page-api: setup # write page/openapi.json again, from which the types of the page are generated
	@$(BIN)/python -m tests.tools.page_api

size: setup ## lines of product and tests, words of docs, files, and the seconds of the last whole make test
	@$(BIN)/python -m tests.tools.size

sbom: setup ## what the images consist of, as CycloneDX, without a network, into artifacts/sbom
	@$(BIN)/python -m tests.tools.bill_of_materials $(ARGS)

scan: osv-scanner sbom ## known vulnerabilities of what the images consist of (ADVISORIES=folder: without a network)
	@$(BIN)/python -m tests.tools.vulnerability_scan $(if $(ADVISORIES),--advisories $(ADVISORIES)) $(ARGS)

fmt: setup ## format, and apply the fixes of ruff
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only --quiet .

# The one lock: all extras and groups, Python 3.11 to 3.13, Linux and macOS, hashes, and no index in it.
lock: setup ## write the lock files again, keeping versions where possible (UPGRADE=1: the newest allowed)
	@$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
		--all-extras --group dev --group build --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) \
		--output-file requirements.lock
	@for lock in $(ENGINES:%=tests/%/engines.lock); do \
		$(BIN)/uv pip compile $${lock%lock}in --quiet --universal --python-version 3.11 --generate-hashes \
			--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) --output-file $$lock || exit 1; \
		awk 'NR==FNR {if (/^[a-z0-9]/) locked[$$1]; next} /^[a-z0-9]/ {shared = $$1 in locked; if (shared) sub(/ \\$$/, "")} \
			!(shared && /--hash/)' requirements.lock $$lock >.cache/bare.lock && mv .cache/bare.lock $$lock; done
	@if grep -nE '://|^-' requirements.lock $(ENGINES:%=tests/%/engines.lock); then echo "[lock] error: the lock names an index or a path" >&2; exit 1; fi
	@sh .ci/setup

clean: ## remove what builds and tests leave; keeps .venv and the caches of downloads
	@rm -rf decider/page dist artifacts .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	@find actor decider services shared tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## also remove .venv and the downloads
	@rm -rf .venv .cache page/node_modules page/src/api/schema.d.ts page/tests/dashboard.gen.ts
