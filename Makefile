# Everything lives in .venv; each target does its own set-up, and a second call is instant.
# A fresh machine needs Python 3.11 or newer, make and git.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
UV := $(BIN)/uv
INSTALL := $(UV) pip install --quiet --python $(RUN)
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# otherwise each of the many processes that the tests start compiles every module again
unexport PYTHONDONTWRITEBYTECODE

# Simulations make and drop arrays all the time; the C library hands large ones back to the system,
# which clears their pages anew each time: a third of the work. Here it keeps them. Not for `bench`,
# which measures what users have.
pytest validate validate-full fuzz: export MALLOC_MMAP_THRESHOLD_ := 33554432
pytest validate validate-full fuzz: export MALLOC_TRIM_THRESHOLD_ := 1073741824

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test pytest lint format docs pictures bench validate validate-full fuzz \
	house datasets requirements lowest versions dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.test ## create .venv with everything the tests need

demo: $(VENV)/.core ## audit the bundled COMPAS counts
	@$(RUN) -m equipoise demo

test: lint pytest ## all checks, then all tests

pytest: $(VENV)/.test $(VENV)/.browser $(VENV)/.java ## the tests alone (ARGS="-k name" to choose)
	$(RUN) -m pytest -n $(WORKERS) $(ARGS)

lint: $(VENV)/.test ## style, types, import order, hygiene
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) tools/check_layers.py
	$(RUN) tools/check_hygiene.py

format: $(VENV)/.test ## let ruff put the source in order
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

docs: $(VENV)/.docs ## build the documentation into site/
	$(RUN) -m mkdocs build --strict --quiet

pictures: $(VENV)/.test ## make the charts and the list of commands of the documentation again
	$(RUN) tools/command_page.py
	$(RUN) tools/pictures.py $(ARGS) > /dev/null

bench: $(VENV)/.test ## compare speed and memory with plain alternatives, in one run
	@$(call run_script,benchmarks/run.py,$(ARGS))

validate: $(VENV)/.test ## published tables beside ours, the quick part
	@$(call run_script,validation/run.py,$(ARGS))

validate-full: $(VENV)/.test ## published tables beside ours, every replicate
	@$(call run_script,validation/run.py,--full $(ARGS))

fuzz: $(VENV)/.test ## the property tests and attacks of tests/fuzz and tests/safety, many more cases
	@test -d tests/fuzz || { echo "make fuzz: tests/fuzz does not exist yet" >&2; exit 1; }
	EQUIPOISE_FUZZ_EXAMPLES=$${EQUIPOISE_FUZZ_EXAMPLES:-5000} $(RUN) -m pytest -n $(WORKERS) tests/fuzz tests/safety $(ARGS)

house: $(VENV)/.test ## sizes, comments, types beside the aims (ARGS=--write for CONTRIBUTING.md)
	@$(RUN) tools/house.py $(ARGS)

datasets: $(VENV)/.core ## rebuild the bundled counts (RAW=folder of the raw tables)
	@test -n "$(RAW)" || { echo "make datasets: say RAW=<folder of the raw tables>" >&2; exit 2; }
	$(RUN) tools/build_datasets.py "$(RAW)"

lowest: $(VENV)/.test ## the oldest allowed versions of all dependencies give the same answers
	@$(RUN) tools/lowest_versions.py $(ARGS)

# other versions of Python, where they are there; a core environment each, README's lines and quick tests
versions: $(VENV)/.core ## the core on every other Python that is installed (3.12, 3.13, 3.14)
	@$(RUN) tools/other_pythons.py 3.12 3.13 3.14

dist: $(VENV)/.core ## build wheel, source archive and list of components (CycloneDX); install and use each
	rm -rf dist
	$(RUN) -m hatchling build -d dist
	$(RUN) tools/sbom.py dist
	@$(RUN) tools/try_dist.py dist

clean: ## remove .venv and everything built
	rm -rf $(VENV) site out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

define run_script
test -f $(1) || { echo "make $@: $(1) does not exist yet" >&2; exit 1; }; $(RUN) $(1) $(2)
endef

# --- set-up, remembered by stamp files inside .venv ---------------------------------------

$(VENV)/.uv: requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "equipoise needs Python 3.11 or newer; say make PYTHON=python3.11 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --require-hashes --only-binary :all: -r requirements/uv.txt
	@touch $@

$(VENV)/.core: $(VENV)/.uv requirements/core.txt pyproject.toml
	$(INSTALL) --require-hashes -r requirements/core.txt
	$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.test: $(VENV)/.core requirements/test.txt
	$(INSTALL) --require-hashes -r requirements/test.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.test requirements/docs.txt
	$(INSTALL) --require-hashes -r requirements/docs.txt
	@touch $@

# Debian's own packages, where they are missing and we may install them; nothing else is tried.
define debian
command -v $(1) >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	--no-install-recommends $(2) >/dev/null; } || true
@command -v $(1) >/dev/null || echo "SKIPPED: $(1) is missing and could not be installed ($(2))," \
	"so $(3) are skipped" >&2
endef

$(VENV)/.browser: $(VENV)/.test
	@$(call debian,chromium,chromium fonts-dejavu-core,the tests of the report in a browser)
	@touch $@

$(VENV)/.java: $(VENV)/.test
	@$(call debian,java,openjdk-17-jre-headless,the tests on Spark)
	@touch $@

# --- pinned and hashed requirements; they name no registry ---------------------------------

COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements"

requirements: $(VENV)/.uv ## pin and hash again (ARGS=--upgrade for newer versions)
	$(COMPILE) $(ARGS) requirements/uv.in -o requirements/uv.txt
	$(COMPILE) $(ARGS) pyproject.toml requirements/core.in --extra learn --extra report \
		-o requirements/core.txt
	$(COMPILE) $(ARGS) pyproject.toml requirements/core.in --extra dev \
		-c requirements/core.txt -o requirements/test.txt
	$(COMPILE) $(ARGS) pyproject.toml requirements/core.in --extra docs \
		-c requirements/test.txt -o requirements/docs.txt
