# One entry for people and for continuous integration. Everything is created inside the checkout (.venv, .cache) by
# .ci/setup, which is quick when there is nothing to do. Written for GNU make 3.81 (macOS) and a POSIX shell.
SHELL := /bin/sh
BIN   := .venv/bin
UV_CACHE_DIR ?= $(CURDIR)/.cache/uv
export UV_CACHE_DIR

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-iceberg test test-page pictures page-api check integration stress chaos load minio helm osv-scanner test-s3 test-images test-cluster fmt lock clean distclean mutants interop soak coverage copies test-iceberg test-care test-crashes test-contracts test-kafka setup-qbeast test-qbeast test-spark-cluster
.PHONY: everything sbom scan bench bench-advice bench-autocomp bench-capacity bench-fleet bench-netflix bench-policy bench-queue bench-decide bench-rebuild bench-rewrite bench-spark-cluster bench-delta bench-iceberg bench-read

help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  settings: PYTHON=python3.12 (3.11 to 3.13)  ARGS='arguments for pytest'  JSON=file (demo, bench, bench-policy)"

setup: ## virtual environment, locked packages, Java where none fits, Spark's jars; quick the second time
	@PYTHON="$(PYTHON)" sh .ci/setup

demo: setup ## embedded Redis, decider and actor on a table that gets small commits: see it work
	@$(BIN)/python -m services.demo $(if $(JSON),--json $(JSON)) $(ARGS)

demo-iceberg: setup ## the demo on an Iceberg table of a REST catalog, which is a process of its own
	@$(BIN)/python -m services.demo --format iceberg $(if $(JSON),--json $(JSON)) $(ARGS)

check: setup ## formatting, lint, types of Python and of the page, import laws; no tests
	@echo "[check] ruff";        $(BIN)/ruff check --quiet .
	@echo "[check] ruff format"; $(BIN)/ruff format --quiet --check .
	@echo "[check] mypy";        $(BIN)/mypy --no-error-summary
	@echo "[check] page";         $(BIN)/python page/build.py check
	@echo "[check] lint-imports"; out=$$($(BIN)/lint-imports 2>&1) || { echo "$$out"; exit 1; }

test: check ## the checks, and the tests with real Redis, real Spark and a real browser; long ones have targets of their own
	@echo "[test] unit tests of the page"; $(BIN)/python page/build.py test
	@echo "[test] all tests but the long ones; the slowest and the reasons of skips are listed at the end"
	@$(BIN)/pytest -n 3 --dist loadgroup --durations=10 --durations-min=1 $(ARGS)

test-page: check ## the page: unit tests, and all tests in a real browser, those of 100,000 tables included
	@$(BIN)/python page/build.py test
	@LAKEWRIGHT_PACKAGED_BROWSER=true $(BIN)/pytest --long page -q -s tests/page $(ARGS)

pictures: setup ## pictures of every view of the page on a running demo, into artifacts/pictures (TO=folder)
	@$(BIN)/python -m tests.support.page_pictures $(or $(TO),artifacts/pictures)

page-api: setup ## write page/openapi.json again, from which the types of the page are generated
	@$(BIN)/python -m tests.support.page_api

integration: setup ## only the tests that need real Redis or real Spark
	@$(BIN)/pytest --durations=10 --durations-min=1 -m "redis or spark or e2e" $(ARGS)

# The tests of the core: what lies beside it, and the suites that hold its laws, with one seed: a branch that only some
# seeds take needs a test of its own.
COVERING := tests/unit/shared tests/unit/actor tests/unit/decider/decide tests/unit/decider/state tests/property \
	tests/contract/test_actions.py tests/contract/test_table_actions.py $(wildcard tests/contract/test_queue_*.py)

coverage: setup ## branch coverage of the core, which must be complete; no Spark; JSON=file, HTML=folder
	@$(BIN)/coverage run -m pytest -q -p no:xdist --hypothesis-seed=0 -m "not spark" $(COVERING) $(ARGS)
	@$(if $(JSON),$(BIN)/coverage json --quiet --fail-under=0 -o $(JSON))
	@$(if $(HTML),$(BIN)/coverage html --quiet --fail-under=0 -d $(HTML))
	@$(BIN)/coverage report

stress: setup ## 5,000 random lives of the queue instead of 200 (EXAMPLES=n for another number)
	@LAKEWRIGHT_STRESS_EXAMPLES=$(or $(EXAMPLES),5000) $(BIN)/pytest --timeout=0 tests/property/test_queue_machine.py $(ARGS)

minio: setup ## build MinIO once, where there is Go; without it the tests that need it are skipped
	@$(BIN)/python -m tests.support.go_programs minio

helm: setup ## build Helm once, where there is Go; without it the tests of the chart are skipped
	@$(BIN)/python -m tests.support.go_programs helm

osv-scanner: setup ## build OSV-Scanner once, where there is Go; without it tests of make scan are skipped
	@$(BIN)/python -m tests.support.go_programs osv-scanner

test-s3: minio ## only the tests with MinIO and with S3's jars in the actor
	@$(BIN)/pytest --long s3 --durations=5 --durations-min=1 -m s3 $(ARGS)

test-images: setup ## build the images and run them as compose.yaml says; needs Docker (PYTHON_IMAGE, REDIS_IMAGE: other bases)
	@LAKEWRIGHT_TOKEN=not-used-for-building docker compose --profile qbeast build
	@$(BIN)/pytest --long images tests/e2e/test_images.py tests/e2e/test_qbeast_image.py $(ARGS)

test-cluster: helm minio ## the chart on a real Kubernetes of one and two nodes; needs Linux, root, Debian's APT and Go; first builds for an hour
	@$(BIN)/python -m tests.support.go_programs kube-router
	@$(BIN)/python -m tests.cluster.programs
	@$(BIN)/pytest --long cluster -q -s tests/cluster $(ARGS)

load: setup ## 2,000 events/s for a minute against one decider, with slow clients and 10 MB bodies; JSON=file
	@$(BIN)/python -m tests.load $(if $(JSON),--json $(JSON)) $(ARGS)

chaos: setup ## ten kinds of faults against the queue for ten minutes (SECONDS_=n for another time)
	@$(BIN)/python -m tests.chaos $(if $(SECONDS_),--seconds $(SECONDS_)) $(if $(JSON),--json $(JSON))

mutants: setup ## one-line changes that tests must notice, each in a copy; none may survive (ONLY=text, JSON=file)
	@$(BIN)/python -m tests.mutants $(if $(ONLY),--only $(ONLY)) $(if $(JSON),--json $(JSON)) $(ARGS)

# Engines whose versions the locked environment cannot hold as well live in one of their own.
interop: setup ## every engine reads and writes tables that we rewrote; JSON=file DOCS=page ARGS="--only REGEX"
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .cache/interop
	@$(BIN)/uv pip sync --quiet --python .cache/interop/bin/python --require-hashes tests/interop/engines.lock
	@$(BIN)/python -m tests.interop $(if $(JSON),--json $(JSON)) $(if $(DOCS),--docs $(DOCS)) $(ARGS)

soak: setup ## three deltalake writers and Spark on ten tables for twenty minutes, with faults (SECONDS_=n, SEED=n); JSON=file
	@$(BIN)/python -m tests.soak $(if $(SECONDS_),--seconds $(SECONDS_)) $(if $(SEED),--seed $(SEED)) $(if $(JSON),--json $(JSON)) $(ARGS)

test-iceberg: setup ## the tests of Iceberg tables, the long ones, too; fetches the REST server of Iceberg (27 MB)
	@$(BIN)/python -m tests.support.iceberg_server
	@$(BIN)/pytest --long iceberg --durations=5 --durations-min=1 -k iceberg $(ARGS)

setup-qbeast: setup ## environment of the Qbeast actor in .cache/qbeast; LAKEWRIGHT_QBEAST_JAR names the library's jar
	@sh .ci/setup-qbeast

test-qbeast: setup ## Qbeast: the laws on 1,000 simulated indexes (EXAMPLES=n), and real tables if the library is there
	@LAKEWRIGHT_QBEAST_EXAMPLES=$(or $(EXAMPLES),1000) $(BIN)/pytest --timeout=0 -q tests/property/test_qbeast_index.py \
		tests/property/test_qbeast_sampling.py $(ARGS)
	@$(BIN)/pytest --long qbeast --timeout=0 -q -s tests/qbeast $(ARGS)

test-kafka: setup ## events from a real Kafka broker; fetches it (43 MB); consumers and broker are killed (LAKEWRIGHT_KAFKA_SEED=n)
	@$(BIN)/python -m tests.support.kafka_broker
	@$(BIN)/pytest --long kafka -q -s tests/integration/test_kafka_broker.py $(ARGS)

copies: setup ## copies of row groups: 200 random tables (EXAMPLES=n, SEED=n), a cluster, all contract tests with copying forced
	@LAKEWRIGHT_COPY_EXAMPLES=$(or $(EXAMPLES),200) LAKEWRIGHT_COPY_SEED=$(or $(SEED),1) $(BIN)/pytest --long contracts --timeout=0 -q -s tests/contract/test_copied_and_encoded.py $(ARGS)
	@$(BIN)/pytest --long copies -q tests/integration/test_copy_on_cluster.py $(ARGS)
	@LAKEWRIGHT_TEST_ROW_GROUP_COPY=forced $(BIN)/pytest --long contracts --timeout=0 -q -s -m spark tests/contract $(ARGS)

test-spark-cluster: setup ## actors on a real standalone cluster of Spark with two workers: where tasks run, killed executors, two actors
	@$(BIN)/pytest --long spark-cluster --timeout=0 -q -s tests/spark_cluster $(ARGS)

test-crashes: setup ## what kills services, JVMs and Redis, which make test leaves out: no row, event or job is lost
	@$(BIN)/pytest -n 2 --dist loadgroup --long crashes --durations=5 --durations-min=1 -m long $(ARGS)

test-contracts: setup ## further types, names and engines of the contracts, which make test leaves out
	@$(BIN)/pytest -n 2 --dist loadgroup --long contracts --durations=5 --durations-min=1 -m long $(ARGS)

test-care: minio ## vacuum, order and metadata of tables for an hour: kills, two writers, 100,000 files, MinIO
	@$(BIN)/pytest --long care --timeout=0 -q -s tests/care $(ARGS)

bench-queue: setup ## the queue's server time per script, and five other queues beside it on the same Redis; JSON=file
	@$(BIN)/python -m tests.bench.queue $(if $(JSON),--json $(JSON)) $(ARGS)

everything: setup ## all suites and benches, one after another, and one report, into artifacts/everything (TO=folder, ONLY=regex); a day
	@$(BIN)/python -m tests.support.everything $(if $(TO),--to $(TO)) $(if $(ONLY),--only '$(ONLY)')

BENCHES := policy fleet netflix queue decide rebuild rewrite spark-cluster delta iceberg autocomp read

bench: setup ## every benchmark, one after another; JSON=b.json keeps b-policy.json, b-queue.json and so on
	@status=0; for part in $(BENCHES); do echo "[bench] $$part"; \
		$(MAKE) --no-print-directory bench-$$part $(if $(JSON),JSON=$(basename $(JSON))-$$part.json) || status=1; done; exit $$status

bench-decide: setup ## commits folded per core, event to decision, Redis bytes per partition, Delta and Iceberg; five minutes; JSON=file
	@$(BIN)/python -m tests.bench.decide $(if $(JSON),--json $(JSON)) $(ARGS)

bench-capacity: setup ## CPU and memory of a decider and its Redis with 1,000 to 100,000 tables; an hour; JSON=file, ARGS="--sizes 1000"
	@$(BIN)/python -m tests.bench.capacity $(if $(JSON),--json $(JSON)) $(ARGS)

bench-rebuild: setup ## a rebuild of a million files beside deltalake, and other tables meanwhile; JSON=file, ARGS="--files 100000"
	@$(BIN)/python -m tests.bench.rebuild $(if $(JSON),--json $(JSON)) $(ARGS)

bench-rewrite: setup ## one rewrite against Delta's OPTIMIZE on the same files, and where the time goes; JSON=file
	@$(BIN)/python -m tests.bench.rewrite $(if $(JSON),--json $(JSON)) $(ARGS)

bench-spark-cluster: setup ## a job of 64 groups on a standalone cluster of Spark, with one executor and with two; JSON=file
	@$(BIN)/python -m tests.bench.spark_cluster $(if $(JSON),--json $(JSON)) $(ARGS)

bench-advice: setup ## advice against the best of all settings on ten histories, and its CPU time for a lake; JSON=file
	@$(BIN)/python -m tests.bench.advice $(if $(JSON),--json $(JSON)) $(ARGS)

bench-policy: setup ## rules side by side on four streams, with the optimum; no Spark; JSON=file keeps the figures
	@$(BIN)/python -m tests.bench.policy $(if $(JSON),--json $(JSON))

bench-fleet: setup ## orders of dispatch over 1,000 tables: simulated, and on real Delta tables with one slot; JSON=file
	@$(BIN)/python -m tests.bench.fleet
	@$(BIN)/python -m tests.bench.fleet.real $(if $(JSON),--json $(JSON)) $(ARGS)

bench-netflix: setup ## the seven figures of Netflix's post, ours beside theirs, simulated and on a small real table; JSON=file
	@$(BIN)/python -m tests.bench.netflix $(if $(JSON),--json $(JSON)) $(ARGS)

bench-autocomp: setup ## TPC-H tables written in a trickle: files, query time and cost, left alone, periodic and ours; JSON=file
	@$(BIN)/python -m tests.bench.autocomp $(if $(JSON),--json $(JSON)) $(ARGS)

bench-delta: setup ## one trace under Lakewright, OPTIMIZE, auto-compaction and deltalake; real Spark; JSON=file, ARGS="--commits 60"
	@$(BIN)/python -m tests.bench.delta $(if $(JSON),--json $(JSON)) $(ARGS)

bench-iceberg: setup ## the same trace under Lakewright, rewrite_data_files and Amoro's rule; real Spark and Iceberg; JSON=file, ARGS="--commits 60"
	@$(BIN)/python -m tests.bench.iceberg $(if $(JSON),--json $(JSON)) $(ARGS)

bench-read: setup ## tables that rules left, read by Spark, DuckDB and deltalake; how large row groups must be; JSON=file
	@$(BIN)/python -m tests.bench.read $(if $(JSON),--json $(JSON)) $(ARGS)

sbom: setup ## what the images consist of, as CycloneDX, without a network, into artifacts/sbom
	@$(BIN)/python -m tests.support.bill_of_materials $(ARGS)

scan: osv-scanner sbom ## known vulnerabilities of what the images consist of; needs Go; ADVISORIES=folder: without a network
	@$(BIN)/python -m tests.support.vulnerability_scan $(if $(ADVISORIES),--advisories $(ADVISORIES)) $(ARGS)

fmt: setup ## format, and apply the fixes of ruff
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only --quiet .

# The one lock: all extras and groups, Python 3.11 to 3.13, Linux and macOS, hashes, and no index in it.
lock: setup ## write requirements.lock again, keeping versions where possible (UPGRADE=1: the newest allowed)
	@$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
		--all-extras --group dev --group build --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) \
		--output-file requirements.lock
	@$(BIN)/uv pip compile tests/interop/engines.in --quiet --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) --output-file tests/interop/engines.lock
	@sed -n 's/^\([A-Za-z0-9_.-]*==[^ ;]*\).*/\1/p' requirements.lock | grep -vE '^(pyspark|py4j)==' >.cache/qbeast.constraints
	@$(BIN)/uv pip compile services/actor/qbeast.in --quiet --universal --python-version 3.11 --generate-hashes \
		--constraints .cache/qbeast.constraints --custom-compile-command "make lock" --output-file services/actor/qbeast.lock
	@if grep -nE '://|^-' requirements.lock tests/interop/engines.lock services/actor/qbeast.lock; then echo "[lock] error: the lock names an index or a path" >&2; exit 1; fi
	@sh .ci/setup

clean: ## remove what builds and tests leave; keeps .venv and the caches of downloads
	@rm -rf decider/page dist artifacts .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	@find actor decider services shared tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## also remove .venv and the downloads
	@rm -rf .venv .cache page/node_modules page/src/api/schema.d.ts page/tests/dashboard.gen.ts
