# SPDX-License-Identifier: Apache-2.0
# The few commands to know. Everything lives in .venv and vscode-client/node_modules; only the end-to-end tests of
# the editor keep code-server in a cache folder, and install Chromium where they may.
#   make run       sets up, simulates one of our kernels (KERNEL=...) and prints advice for it
#   make test      every test this machine can run
#   make check     format, lint, types, layers, spelling, declared dependencies, dead code
#   make bench     times against nvdisasm
#   make validate  figures on estimates, blame, architectures and large corpora
#   make docs      writes the rules' pages from their modules, and builds the site: build/site/docs/index.html
#   make dist      what a release publishes, built twice and compared, with its bill of materials, and a wheel with
#                  compiled modules for this machine and Python: dist
#   make wheel-compiled  that wheel alone (needs a C compiler); make test-compiled  the same answers from its modules
#   make release   VERSION=X.Y.Z: version, changelog, commit and tag
#   make figures   how large and how tangled the sources are (ARGS="407341e" for those of a commit)
#   make vsix      packages the VS Code extension: vscode-client/dist/gpadvisor.vsix
#   make fuzz      mutated reports, cubins, line tables, snapshots and collections for FOR (600) seconds; finds go to
#                  tests/fuzz/corpus
#   make test-random  the tests in a random order, last in line for the processors (ARGS="--random-order-seed 7" again)
#   make mutate    changes an operator or a number at a time where advice is made, and prints what no unit test
#                  notices; about 20 minutes of two processors (ARGS="--mutants 20 --seed 2 --package blamer")
#   make lock      the hashes of all files of the versions in constraints.txt, there and for the extension
#   make advisories  asks osv.dev about every version that is installed; says so where there is no network
#   make pictures  those of README and docs, as the end-to-end tests see them
#   make e2e       drives it in real VS Code; RUNS="host person" names some of the runs

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := run
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# For compiling to sm_70, and for drivers before CUDA 13.
CUDA_12 := nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-cupti-cu12==12.9.79 nvidia-cuda-runtime-cu12==12.9.79
# Its wheel holds nvdisasm 12.8, which knows sm_70.
NVDISASM_12 := triton==3.3.1
KERNEL ?= thermal_stencil
FOR ?= 600
COMPILED := build/with-compiled

# A stamp is named after the content it was made from, so that an unchanged checkout needs no network.
KEY := $(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
BASE := $(VENV)/.base-$(KEY)
TEST := $(VENV)/.test-$(KEY)
CHECK := $(VENV)/.check-$(KEY)
DOCS := $(VENV)/.docs-$(KEY)
MODULES := vscode-client/node_modules/.installed-$(shell cat vscode-client/package.json vscode-client/package-lock.json | cksum | cut -d' ' -f1)
HAVE_NPM := command -v npm >/dev/null
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# What pip does stands in one line of a terminal; elsewhere only its errors are printed.
SHOWN := | if [ -t 1 ]; then awk '{ printf "\r\033[K%s", substr($$0, 1, 78); fflush() } END { printf "\r\033[K" }'; \
	else cat >/dev/null; fi
# What was tested and nothing else: by hash, and without running anybody's build.
LOCKED := $(PIP) install --require-hashes --only-binary :all:
NEEDED = <($(BIN)/python -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]$(1), sep="\n")')
# Beside its sources, wherever else it is.
LOOP := GPADVISOR_CACHE= $(BIN)/python -m gpadvisor.simulator
COMPILE := $(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --no-annotate \
	-c constraints.txt pyproject.toml --extra compile

.PHONY: wheel-compiled test-compiled dist pictures test-random release figures site fuzz mutate lock advisories run test check format docs bench validate clean vsix e2e client-check client-test client-modules installed test-python

# The launch of each of our kernels stands in fixtures/gpadvisor.toml.
run: $(BASE)
	@cd fixtures && $(abspath $(BIN))/gpadvisor advise kernels/$(KERNEL)/before.cu --model --top 2
	@echo "Next: cd fixtures; . ../.venv/bin/activate (for the above), or gpadvisor doctor"

# A worker that is done takes tests of the other, the last of a row: those of one file stay together, where fixtures
# and compiled code are shared, and both workers end together.
test: test-python client-test e2e

test-python: $(TEST)
	@# Tests that call make have nothing to do with how this one was called.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(NICE) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q $(ARGS)

# What the parts of .ci/run need, which run beside each other later: npm waits for the network beside pip (-j2).
installed: $(CHECK) $(shell ! $(HAVE_NPM) || echo $(MODULES))
	@$(MAKE) --no-print-directory $(DOCS)

check: $(CHECK) client-check site
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(NICE) $(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/deptry .
	$(BIN)/vulture

format: $(CHECK)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The client's own checks and tests need npm; in CI a missing one is a failure.
client-check client-test: client-%: $(TEST)
	@if $(HAVE_NPM); then $(MAKE) --no-print-directory $(MODULES) && cd vscode-client && \
		PYTHON=$(abspath $(BIN))/python npm run --silent $*; \
	else echo "skipped: client-$* (npm is not installed)"; test -z "$$CI"; fi

client-modules: $(MODULES)

vsix: $(TEST) $(MODULES)
	vscode-client/package.sh $(BIN)/python

e2e: $(TEST)
	vscode-client/e2e/e2e.sh $(BIN)/python $(RUNS)

bench: $(TEST)
	$(BIN)/python -m bench $(ARGS)
	$(BIN)/python -m bench.editor

fuzz: $(TEST)
	$(BIN)/python -m tests.fuzz --seconds $(FOR)

# Also without a terminal, and however long a busy machine takes.
test-random: $(TEST)
	nohup nice -n 19 $(BIN)/python -m pytest -n $(JOBS) -q --random-order -o timeout=3000 \
		-o faulthandler_timeout=2900 $(ARGS) < /dev/null

mutate: $(TEST)
	$(BIN)/python -m tests.mutation $(ARGS)

# Opened and judged before they are committed.
pictures: $(TEST)
	vscode-client/e2e/e2e.sh $(BIN)/python page report person
	cd vscode-client/shots && cp {page,roofline,potential,tree}-{light,dark}.png page-compared.png ../../docs/images/
	cd vscode-client/shots && cp {findings,summary,sass}.png ../media/
	cd vscode-client/shots && for shot in report-light:report advice:advice fixed:fix sass:sass; do \
		cp $${shot%:*}.png ../../docs/images/editor-$${shot#*:}.png; done

lock: $(TEST)
	@$(PIP) install uv $(SHOWN)
	@mkdir -p build
	printf '%s\n' pip hatchling editables | \
		$(COMPILE) - --extra profile --extra mcp --extra cluster --group test --group check --group docs -o build/constraints.txt
	$(COMPILE) -o build/requirements.txt
	$(BIN)/python vscode-client/supply.py lock build/constraints.txt build/requirements.txt

advisories: $(BASE)
	$(BIN)/python vscode-client/supply.py advisories

docs: $(BASE)
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.generate_editor
	$(MAKE) --no-print-directory site

# The version of a release is that of its tag.
release: $(DOCS)
	@[[ "$(VERSION)" =~ ^[0-9]+\.[0-9]+\.[0-9]+$$ ]] || { echo "make release VERSION=X.Y.Z" >&2; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo "commit first" >&2; exit 1; }
	@! git rev-parse -q --verify "refs/tags/v$(VERSION)" >/dev/null || { echo "v$(VERSION) is there" >&2; exit 1; }
	sed -i 's/^__version__ = .*/__version__ = "$(VERSION)"/' server/gpadvisor/__init__.py
	cd vscode-client && npm version --no-git-tag-version $(VERSION)
	$(BIN)/towncrier build --yes --version $(VERSION)
	git commit -qam "Release $(VERSION)"
	git tag -m "gpadvisor $(VERSION)" "v$(VERSION)"

# The same bit for bit each time, and of the version that TAG names where one is given.
dist: $(CHECK)
	@version=$$($(BIN)/python -c 'import gpadvisor; print(gpadvisor.__version__)'); \
		test "$(or $(TAG),v$$version)" = "v$$version" || { echo "TAG is $(TAG), the version $$version" >&2; exit 1; }
	rm -rf dist build/again
	for folder in dist build/again; do rm -f server/gpadvisor/simulator/loop.*.o; $(LOOP); \
		$(BIN)/python -m hatchling build -d $$folder; done
	for file in dist/*; do cmp "$$file" "build/again/$${file##*/}"; done
	$(MAKE) --no-print-directory wheel-compiled
	$(BIN)/python vscode-client/supply.py sbom package > dist/sbom.json
	@if $(HAVE_NPM); then for folder in build/again dist; do $(MAKE) --no-print-directory vsix && \
		cp vscode-client/dist/gpadvisor.vsix $$folder/; done && cmp build/again/gpadvisor.vsix dist/gpadvisor.vsix; \
	else echo "skipped: the extension (npm is not installed)"; test -z "$$CI"; fi

wheel-compiled: $(CHECK)
	GPADVISOR_COMPILED=1 $(NICE) $(BIN)/python -m hatchling build -t wheel -d dist >/dev/null

# Values, laws and whole reports, from modules that stand before those of the checkout: the C of a wheel, whose
# optimization would take longer than the tests. Constants are compiled in, so that no test changes one.
test-compiled: $(CHECK)
	rm -rf $(COMPILED)
	GPADVISOR_COMPILED=unoptimized $(NICE) $(BIN)/python -m hatchling build -t wheel -d $(COMPILED) >/dev/null
	$(BIN)/python -m zipfile -e $(COMPILED)/*.whl $(COMPILED)/modules
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL PYTHONPATH=$(abspath $(COMPILED)/modules) \
		GPADVISOR_COMPILED_MODULES=$(abspath $(COMPILED)/modules) $(NICE) $(BIN)/python -m pytest -n $(JOBS) -q \
		tests/e2e/test_compiled.py tests/golden/report tests/property/analyzer tests/property/blamer \
		tests/unit/analyzer tests/unit/blamer tests/unit/evidence tests/unit/sass tests/unit/estimators $(ARGS)

# Fails at a link to a page or a heading that is not there, and at a changelog fragment with a wrong name.
site: $(DOCS)
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees -c docs . build/site
	$(BIN)/towncrier build --draft --version next >/dev/null

figures: $(TEST)
	$(BIN)/python -m docs.figures $(ARGS)

# Each part tells on standard error how far it is; estimates and architectures go on where they were stopped.
validate: $(TEST)
	$(BIN)/python -m tests.validation.pairs
	$(BIN)/python -m tests.validation.captures
	$(BIN)/python -m tests.validation.caches
	$(BIN)/python -m tests.validation.estimates
	$(BIN)/python -m tests.validation.blame
	$(BIN)/python -m tests.validation.throttles
	$(BIN)/python -m tests.validation.sources --keep build/sources
	$(BIN)/python -m tests.validation.real_pair
	$(BIN)/python -m tests.validation.table3
	$(BIN)/python -m tests.validation.published_steps
	$(BIN)/python -m tests.validation.load
	@$(PIP) install --no-deps --upgrade --target build/cuda-12 $(CUDA_12) $(SHOWN)
	-@$(PIP) install --no-deps --upgrade --target build/nvdisasm-12 $(NVDISASM_12) $(SHOWN)
	PYTHONPATH=build/cuda-12:build/nvdisasm-12 $(BIN)/python -m tests.validation.volta
	PYTHONPATH=build/cuda-12 $(BIN)/python -m tests.validation.table3 --arch sm_70
	PYTHONPATH=build/cuda-12 $(BIN)/python -m tests.validation.architectures
	PYTHONPATH=build/cuda-12 $(BIN)/python -m tests.validation.lines
	GPADVISOR_VALIDATE=1 $(BIN)/python -m pytest -n $(JOBS) -q -m validate $(ARGS)
	PYTHONPATH=build/cuda-12 $(BIN)/python -m pytest -n $(JOBS) -q tests/unit/toolchain/test_volta.py \
		tests/unit/profiler/test_cupti_build.py
	$(MAKE) --no-print-directory test-random

clean:
	rm -rf vscode-client/{node_modules,dist,bundled,shots} $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(BASE): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "gpadvisor needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setting up $(VENV): some minutes, once; it works offline then"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "$(PYTHON) has no working venv module; on Debian: apt-get install python3-venv" >&2; \
		rm -rf $(VENV); exit 1; }
	@# An older pip takes no hashes from constraints.
	@$(LOCKED) -r <(sed -n '/^pip==/,/[^\\]$$/p' constraints.txt) $(SHOWN)
	@$(LOCKED) -c constraints.txt hatchling editables -r $(call NEEDED,["dependencies"]) $(SHOWN)
	@$(PIP) install --no-index --no-deps --no-build-isolation -e . $(SHOWN)
	@# The simulator's loop is compiled while the compiler of kernels is fetched.
	@$(LOOP) & loop=$$!; $(LOCKED) -c constraints.txt -r $(call NEEDED,["optional-dependencies"]["compile"]) $(SHOWN); \
		wait $$loop
	@rm -f $(VENV)/.base-* && touch $@

$(TEST): $(BASE)
	@echo "installing what the tests need"
	@$(LOCKED) -c constraints.txt --group test $(SHOWN)
	@rm -f $(VENV)/.test-* && touch $@

$(CHECK): $(TEST)
	@echo "installing what the checks need"
	@$(LOCKED) -c constraints.txt --group check $(SHOWN)
	@rm -f $(VENV)/.check-* && touch $@

$(DOCS): $(BASE)
	@$(LOCKED) -c constraints.txt --group docs $(SHOWN)
	@rm -f $(VENV)/.docs-* && touch $@

$(MODULES): vscode-client/package.json vscode-client/package-lock.json
	cd vscode-client && npm ci --no-audit --no-fund --loglevel=error
	@touch $@
