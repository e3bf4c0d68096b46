# Everything one does with this repository. `make` alone lists it.

# On Windows, use the shell that comes with Git.
WINDOWS     := $(filter Windows_NT,$(OS))
PYTHON      ?= $(if $(WINDOWS),python,python3)
CONSTRAINTS ?= constraints.txt
NB          ?= $(wildcard notebooks/*.ipynb)
JOBS        ?= $(or $(NUMBER_OF_PROCESSORS),$(shell getconf _NPROCESSORS_ONLN))

PROGRAMS  := $(if $(WINDOWS),Scripts,bin)
BIN       := .venv/$(PROGRAMS)
COLAB     := $(CURDIR)/.venv-colab/$(PROGRAMS)
# The stamps are named after the constraints, so that a change of mind installs anew. JupyterLab and
# the notebooks need less than the tests do, so `make lab` alone installs less.
VERSIONS  := $(notdir $(or $(CONSTRAINTS),newest))
INSTALLED := .venv/installed-$(VERSIONS)
LAB_READY := .venv/lab-$(VERSIONS)
NBVAL     := --nbval-lax --nbval-current-env --nbval-cell-timeout=300
# A worker for each core, and each with one thread. A file, and so a notebook, stays with one worker.
WORKERS   := -n $(JOBS) --dist loadfile --no-loadscope-reorder

LIGHT     := PYTHONPATH="$(CURDIR)/tests/support/light"
PYTEST    := OMP_NUM_THREADS=1 $(LIGHT) $(BIN)/python -m pytest $(WORKERS)
SLOWEST   := --durations=15 --durations-min=5

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where this is set, as in many containers, every process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup lab style check test test-all test-colab publish site dist bench examine clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(LAB_READY)  ## set up .venv for the notebooks, and open nothing

# The threads of small networks wait for each other. For more: OMP_NUM_THREADS=4 make lab
lab publish: export OMP_NUM_THREADS ?= 1
lab: $(LAB_READY)  ## open notebook 00 in JupyterLab; for a server: make lab ARGS=--no-browser
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks/00_blind_cliffwalk.ipynb $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

style: $(INSTALLED)  ## check style, formatting, the import order of the rooms, and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

check: style  ## pass style and the quick tests of the package
	@echo "The quick tests take about a minute on two idle cores."
	PER_TUTORIAL_FAST=1 $(PYTEST) -m "not browser and not slow and not exhaustive" tests

test: style  ## pass the tests: style, package, notebooks in fast mode, browser
	@echo "The tests take about six minutes on two idle cores; the slowest are named at the end."
	PER_TUTORIAL_FAST=1 $(PYTEST) $(SLOWEST) $(NBVAL) -m "not exhaustive" tests notebooks

test-all: style  ## pass all tests, those too that take long and rarely find more
	PER_TUTORIAL_FAST=1 $(PYTEST) $(SLOWEST) $(NBVAL) -m "" tests notebooks

test-colab: .venv-colab/installed  ## run the notebooks with Colab's versions, away from this folder
	rm -rf build/content build/lib build/bdist.*
	$(COLAB)/python -m pip install --quiet --no-deps --force-reinstall .
	cp -r notebooks build/content
	cd build/content && PER_TUTORIAL_FAST=1 OMP_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/tests/colab \
	    $(COLAB)/python -m pytest $(NBVAL) $(WORKERS) .

publish: $(INSTALLED)  ## run notebooks in full, tidy and stamp them: make publish NB=notebooks/…
	$(BIN)/python tools/publish.py $(NB)

site: $(INSTALLED)  ## build the web site from the notebooks as they are: build/site
	OMP_NUM_THREADS=1 $(BIN)/python site/build.py

dist: .dist/installed  ## build the release, and try it in an empty environment
	.dist/$(PROGRAMS)/python tools/release.py $(ARGS)

bench: .bench/installed  ## measure speed beside every peer: make bench ARGS="replay --quick"
	.bench/$(PROGRAMS)/python -m benchmarks $(ARGS)

examine: .examined/installed  ## examine other libraries' replay: make examine ARGS="cpprb pfrl"
	.examined/$(PROGRAMS)/python -W ignore tools/examined $(ARGS)

clean:  ## remove the environments and all that was built
	rm -rf .venv .venv-colab .bench .examined .dist build dist notebooks/films *.egg-info .*_cache .hypothesis

# $(call install,ENVIRONMENT,CONSTRAINTS,REQUIREMENTS) makes a virtual environment and fills it. To
# compile all modules takes pip longer than to install them; Python compiles and keeps what it imports.
define install
@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
    echo "This needs Python 3.11 or newer with its venv module, and $(PYTHON) is not that."; \
    echo "Name another: make $(MAKECMDGOALS) PYTHON=python3.12 (on Debian: apt install python3-venv)"; \
    exit 1; }
$(PYTHON) -m venv $(1)
$(1)/$(PROGRAMS)/python -m pip install --no-compile $(if $(2),--constraint $(2)) $(3)
@touch $@
endef

$(LAB_READY): pyproject.toml $(CONSTRAINTS)
	@rm -f .venv/installed-* .venv/lab-*
	$(call install,.venv,$(CONSTRAINTS),--editable ".[lab]")

$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	@rm -f .venv/installed-* .venv/lab-*
	$(call install,.venv,$(CONSTRAINTS),--editable ".[test]")
	@touch $(LAB_READY)

.dist/installed:
	$(call install,.dist,,build twine)

# The peers have an environment of their own: what they ask for must not meet what the series uses.
.bench/installed: pyproject.toml benchmarks/constraints.txt
	$(call install,.bench,benchmarks/constraints.txt,--editable ".[bench]")

# Some ask for versions that the others don't, or we don't: these come without what they ask for.
.examined/installed: pyproject.toml $(wildcard tools/examined/*.txt)
	$(call install,.examined,tools/examined/constraints.txt,--requirement tools/examined/requirements.txt)
	.examined/$(PROGRAMS)/python -m pip install --no-deps --requirement tools/examined/alone.txt --editable .
	@touch $@

.venv-colab/installed: pyproject.toml tests/colab/constraints.txt
	$(call install,.venv-colab,tests/colab/constraints.txt,".[notebooks]" nbval pytest pytest-xdist)
