# `make` alone lists the commands
PYTHON ?= python3
BIN := .venv/bin
export TF_CPP_MIN_LOG_LEVEL ?= 3
BACKENDS ?= jax torch
IN_PARALLEL := -n auto --maxprocesses=8 --dist=worksteal

UV = $$($(PYTHON) bootstrap.py --uv)
PIP_AUDIT := pip-audit==2.9.0
TWINE := twine==7.0.0
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' crowdzoo/__init__.py)

.DEFAULT_GOAL := help
.PHONY: help setup fuzz test-debian13 demo demo-images demo-ner demo-ratings engines reproduce test test-all test-backends lint types format check build site pictures lock constraints pip-installs licences sbom audit clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install everything from the lock into .venv
	@$(PYTHON) bootstrap.py

demo: setup ## main job on real data: LabelMe's crowd labels to a served model, with the accuracy table
	@$(BIN)/crowdzoo demo

demo-images: setup ## the same from JPEG files: photographs and crowd labels to a model that is sent JPEG files
	@$(BIN)/crowdzoo demo images

demo-ner: setup ## the same for sentences: annotators' entities to a served tagger of raw text
	@$(BIN)/crowdzoo demo ner

demo-ratings: setup ## the same for ratings: harsh and mild annotators' numbers to a served regressor
	@$(BIN)/crowdzoo demo ratings

reproduce: setup ## tables of the results and of the six papers beside ours, from the saved results (PAPER=conal for one paper)
	@$(BIN)/python benchmarks/reproduce/pages.py $(PAPER)

# As many processes as cores; each of TensorFlow's and NumPy's own threads would only wait for the others'
test: export TF_NUM_INTRAOP_THREADS ?= 1
test: export OMP_NUM_THREADS ?= 1
# Or each process would compile crowdzoo, and pytest rewrite every test, again
test: export PYTHONDONTWRITEBYTECODE =
test: setup ## every test but the slow ones, on TensorFlow (ARGS="tests/layers -k sparse" for some of them)
	@$(BIN)/python -m pytest -q $(IN_PARALLEL) -m "not slow and not learning" $(ARGS)

# In parts, each with processes of its own: TensorFlow keeps memory of every model that a process made (5 means: no test)
test-all: setup ## every test there is, also the slow ones, on TensorFlow, JAX and PyTorch; the site; and strange inputs
	@$(PYTHON) bootstrap.py --site
	@failed=; part() { echo "== $$1"; name=$$1; shift; "$$@" || [ $$? = 5 ] || failed="$$failed $$name"; }; \
	for tests in $(if $(ARGS),,$(filter-out %__pycache__/,$(sort $(wildcard tests/*/)))); do \
	  part $$tests $(BIN)/python -m pytest -q $(IN_PARALLEL) $$tests; \
	done; \
	part tests $(BIN)/python -m pytest -q $(IN_PARALLEL) $(or $(ARGS),$(wildcard tests/test_*.py)); \
	for more in test-backends fuzz; do part $$more $(MAKE) --no-print-directory $$more; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# JAX spends most of the tests' time compiling small programs, many of them equal: no optimizing, and each only once
test-backends: export JAX_DISABLE_MOST_OPTIMIZATIONS = 1
test-backends: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS = 0
test-backends: export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES = -1
test-backends: ## the layers, losses and models on JAX and PyTorch
	@$(PYTHON) bootstrap.py --backends $(BACKENDS)
	@export JAX_COMPILATION_CACHE_DIR=$$(mktemp -d); trap 'rm -r "$$JAX_COMPILATION_CACHE_DIR"' EXIT; \
	for backend in $(BACKENDS); do \
	  echo "== layers on $$backend"; \
	  KERAS_BACKEND=$$backend PYTHONPATH=. OMP_NUM_THREADS=1 .venv-backends/bin/python -m pytest -q -p no:cacheprovider \
	    -p no:warnings $(IN_PARALLEL) $(or $(ARGS),tests/layers tests/models tests/optimizers tests/test_losses.py tests/training/test_training_faults.py) || exit 1; \
	done

engines: setup ## an object store, Label Studio, MLflow, Prometheus, Prism, Flink, schemas and readers of models, for the tests on real engines in `make test-all` (needs go, java and mvn)
	@$(BIN)/python tests/engines/install.py

fuzz: setup ## strange inputs against every reader, command and server: SEED=0 MINUTES=5 TARGETS="annotations-csv ..."
	@$(BIN)/python tests/fuzz/run.py --seed $(or $(SEED),0) --minutes $(or $(MINUTES),5) $(TARGETS)

test-debian13: ## the README's two commands on a new machine, Debian 13 in a folder (as root, with debootstrap)
	@.ci/debian13

lint: setup ## style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup ## type check
	@$(BIN)/mypy

format: setup ## fix style
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

check: lint types ## style and types

build: setup ## wheel and source distribution into dist/
	@$(BIN)/python -m build -q
	@$(UV) tool run -q $(TWINE) check --strict dist/crowdzoo-$(VERSION).tar.gz dist/crowdzoo-$(VERSION)-py3-none-any.whl

site: setup ## documentation site, into build/site: guides, cards of methods, API reference, reports
	@$(PYTHON) bootstrap.py --site
	@$(BIN)/python -W ignore docs/site/pages.py
	@NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build

pictures: setup ## the pictures of reports in docs/pictures, with Chromium (NAMES="report regions" for some of them)
	@$(BIN)/python -W ignore docs/site/pictures.py $(NAMES)

pip-installs: build ## the wheel in empty environments, with pip alone, each extra by itself: PYTHON=python3.13 EXTRAS="tensorflow serving"
	@.ci/pip_installs dist/crowdzoo-$(VERSION)-py3-none-any.whl --python $(PYTHON) $(if $(EXTRAS),--extras $(EXTRAS))

licences: setup ## table of the licences of what the extras install; tests/test_licences.py refuses some
	@$(BIN)/python tests/test_licences.py

sbom: setup ## what the extras install, with licences, as a bill of materials (CycloneDX) into dist/
	@mkdir -p dist && $(UV) export -q --frozen --all-extras --no-dev --preview-features sbom-export --format cyclonedx1.5 --output-file dist/crowdzoo-$(VERSION).cdx.json
	@$(BIN)/python tests/test_licences.py dist/crowdzoo-$(VERSION).cdx.json

audit: ## known vulnerabilities of what the extras install (asks the index of packages)
	@mkdir -p build && $(UV) export -q --frozen --all-extras --no-dev --no-emit-project --output-file build/audit.txt
	@$(UV) tool run -q $(PIP_AUDIT) --strict --disable-pip --require-hashes -r build/audit.txt

lock: ## resolve the versions again (needs Python 3.10), and write constraints.txt
	@$(UV) lock --no-python-downloads
	@$(UV) pip compile -q --no-config --universal --python-version 3.11 --no-annotate --no-header \
	  docs/site/requirements.in -o docs/site/requirements.txt
	@$(MAKE) --no-print-directory constraints image.txt

# What uv.lock does not have: uv itself, TensorFlow without GPUs, and what source distributions are built with
image.txt: bootstrap.py uv.lock
	@{ sed -n 's/^UV_VERSION = "\(.*\)"/uv==\1/p' bootstrap.py; printf '%s\n' tensorflow-cpu==2.16.2 tensorflow==2.16.2 wheel; \
	  sed -n '/^name = "setuptools"/{n;s/version = "\(.*\)"/setuptools==\1/p}' uv.lock; } | $(UV) pip compile -q --no-config \
	  --no-deps --generate-hashes --no-annotate --no-header --python-version 3.10 --python-platform linux - -o $@

constraints: ## the locked versions of what the extras install, for pip, into constraints.txt
	@$(UV) export -q --frozen --all-extras --no-dev --no-hashes --no-emit-project --no-annotate --output-file constraints.txt

clean: ## remove environments, builds and the demo's output
	@rm -rf .venv .venv-backends .venv-site .venv-tools .engines build dist *.egg-info crowdzoo-runs
