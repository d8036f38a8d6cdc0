# Two commands matter: `make demo` and `make test`. Each sets up what it needs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PREPARED := $(VENV)/.prepared

.PHONY: help setup lock demo test test-kafka test-yarn test-hosts test-kubernetes soak fuzz check bench bench-elastic bench-flink arena reproduce docs readme-figures site package clean

help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) $(PREPARED) ## Make .venv with the package, and Java 17 if there is none

$(STAMP): pyproject.toml requirements.lock scripts/setup.sh
	scripts/setup.sh $(VENV)
	touch $@

# JVMs of Spark start with 0.6 of the CPU time by an archive of its classes, which the tests repay many
# times. Without it everything works.
$(PREPARED): $(STAMP) $(wildcard src/penstock/spark/cluster/*.java)
	$(BIN)/penstock prepare || echo "setup: penstock prepare failed; Spark will start more slowly." >&2
	touch $@

lock: $(STAMP) ## Renew requirements.lock: the newest versions that pyproject.toml allows, with their hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header \
		--python-version 3.11 --extra dev pyproject.toml --output-file requirements.lock

demo: $(STAMP) $(PREPARED) ## A toll road under a load that goes 1 -> 4 -> 1
	$(BIN)/penstock demo $(ARGS)

test: $(STAMP) $(PREPARED) ## All tests, two files at a time (ARGS="-m 'not spark'" for the quick ones, ARGS=--long for all of them)
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-kafka: $(STAMP) $(PREPARED) ## Tests against a real Kafka broker, whose jars are fetched once
	PENSTOCK_KAFKA_JARS="$$(scripts/kafka-jars.sh $(BIN)/python || true)" $(BIN)/pytest tests/kafka $(ARGS)

test-yarn: $(STAMP) $(PREPARED) ## The trial of a cluster manager on YARN, whose jars are fetched once
	PENSTOCK_YARN_JARS="$$(scripts/yarn-jars.sh $(BIN)/python || true)" $(BIN)/pytest -s tests/clusters/test_yarn.py $(ARGS)

test-hosts: $(STAMP) $(PREPARED) ## The same on three hosts, as network namespaces, some cut off and lost; needs root
	PENSTOCK_HOSTS=1 PENSTOCK_YARN_JARS="$$(scripts/yarn-jars.sh $(BIN)/python || true)" \
		PENSTOCK_S3="$$(scripts/s3-env.sh $(BIN)/python || true)" \
		$(BIN)/pytest -s tests/clusters/test_hosts.py $(ARGS)

test-kubernetes: $(STAMP) $(PREPARED) ## The trial on a real control plane of Kubernetes, built once with Go; pods run as processes
	PENSTOCK_KUBERNETES="$$(scripts/kubernetes-control-plane.sh || true)" $(BIN)/pytest -s tests/kubernetes $(ARGS)

soak: $(STAMP) $(PREPARED) ## Faults at random for MINUTES (30) or so many FAULTS, compared after each leg; SEED=n to repeat or go on
	@PENSTOCK_KAFKA_JARS="$$(scripts/kafka-jars.sh $(BIN)/python || true)" \
		PYTHONPATH="tests:.:$${PYTHONPATH:-}" $(BIN)/python -m soak.campaign $(if $(FAULTS),--faults $(FAULTS)) \
		$(if $(MINUTES)$(FAULTS),$(if $(MINUTES),--minutes $(MINUTES)),--minutes 30) $(if $(SEED),--seed $(SEED)) \
		$(if $(FORMS),--forms "$(FORMS)") $(if $(KINDS),--kinds "$(KINDS)") $(ARGS)

CASES ?= 10000
fuzz: $(STAMP) ## Malformed documents, options, meta-data, records and requests, CASES (10000) in all
	PENSTOCK_FUZZ_CASES=$(CASES) $(BIN)/pytest tests/fuzz $(ARGS)

check: $(STAMP) ## Lint, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP) ## All benchmarks, or one with NAME=...; one JSON object a line
	@$(BIN)/python -m benchmarks $(NAME)

bench-elastic: $(STAMP) ## A plain script with and without attach, beside dynamic allocation and fixed sizes
	@$(BIN)/python -m benchmarks elastic

bench-flink: $(STAMP) ## Flink beside us, in an environment of its own: Nexmark and the ramp (CASE=nexmark or elastic for one)
	@PENSTOCK_FLINK_PYTHON="$$(scripts/flink-env.sh $(BIN)/python || true)" $(BIN)/python -m benchmarks flink$(if $(CASE),:$(CASE))

arena: $(STAMP) ## All policies over the loads that are only reported on, beside one who knows the load
	@$(BIN)/penstock arena benchmarks/arena/report/*.toml $(ARGS)

reproduce: $(STAMP) ## A paper's experiments, and which of its claims hold: NAME=drs, ARGS="--quick --json"
	@$(BIN)/python -m experiments $(NAME) $(ARGS)

docs: $(STAMP) ## Make the pages that are made from code
	$(BIN)/python -m penstock.cli.options_page > docs/options.md
	$(BIN)/python scripts/architecture.py
	$(BIN)/python scripts/licences.py
	$(BIN)/python scripts/reference.py

readme-figures: $(STAMP) ## Renew README's figures and pictures by runs of this version (30 minutes; PARTS="demo elastic flink" for some)
	$(BIN)/python -m scripts.readme_figures $(PARTS)

site: ## Build docs/ as a site, in an environment of its own; dead links fail
	scripts/site.sh python3

package: ## Build sdist and wheel, check them, install the wheel in a clean environment (DEMO=1: and run the demo from it)
	scripts/package.sh python3

clean: ## Remove the environment and what runs left behind
	rm -rf $(VENV) dist runs figures .mypy_cache .ruff_cache .pytest_cache .hypothesis
