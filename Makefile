# `make demo` shows the package at work, `make test` proves it; `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
TEST_VENV := .venv-test
CONSTRAINTS_VENV := .venv-constraints
DISTRIBUTED_VENV := .venv-distributed
WHEELS := target/test-wheel

BIN := $(TEST_VENV)/bin
DISTRIBUTED := pyspark "dask[dataframe,distributed]"
DISTRIBUTED_PINS := --constraint constraints.txt --constraint constraints-distributed.txt
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-input
MATURIN_BUILD := maturin build --quiet --release --locked --out $(WHEELS)
RUST_NEEDED := $(or $(shell sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml),1.85)
PYTHON_FOUND := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
PACKAGE_FILES := Cargo.toml Cargo.lock pyproject.toml README.md LICENSE-MIT LICENSE-APACHE \
	$(shell find -L rust python -name __pycache__ -prune -o -print)

# Nothing of the checkout may be imported by way of the caller's environment.
unexport PYTHONPATH PYTHONHOME
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-slow test-distributed calibration bench format constraints clean toolchain installed-wheel java

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed ## install the package into .venv, at need, and run its demonstration
	@$(VENV)/bin/triagestats demo

test: installed-wheel $(TEST_VENV)/.stub-agrees ## check the code, then test the wheel as installed in .venv-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	cargo fmt --check
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo clippy --quiet --locked --all-targets --all-features -- -D warnings
	cargo test --quiet --locked
	$(BIN)/python -P -m pytest --doctest-modules --pyargs tests/ triagestats

test-distributed: installed-wheel $(DISTRIBUTED_VENV)/.python-$(PYTHON_FOUND) java ## the same numbers from a local Spark session and Dask cluster, minutes long
	$(DISTRIBUTED_VENV)/bin/python $(PIP_INSTALL) --force-reinstall --no-deps $(WHEELS)/*.whl
	$(DISTRIBUTED_VENV)/bin/python -P -m pytest tests/test_engine.py -m distributed

test-slow: installed-wheel ## coverage, size and simulation-based calibration studies, minutes long
	$(BIN)/python -P -m pytest tests/ -m slow

calibration: test-slow

bench: installed-wheel ## time the kernels, the import, an analysis and how the bootstrap scales
	cargo bench --locked --bench '*'
	for name in import_time analyze_speed scaling; do $(BIN)/python -P "benches/$$name.py" || exit 1; done

format: $(TEST_VENV)/.python-$(PYTHON_FOUND) ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	cargo fmt

constraints: toolchain ## pin anew, in constraints.txt, what the tests install
	@test "$(PYTHON_FOUND)" = 3.11 || { \
		echo "constraints.txt is made with Python 3.11, the oldest supported: make constraints PYTHON=python3.11" >&2; exit 1; }
	rm -rf $(CONSTRAINTS_VENV) $(WHEELS)
	$(PYTHON) -m venv $(CONSTRAINTS_VENV)
	$(CONSTRAINTS_VENV)/bin/python $(PIP_INSTALL) maturin
	$(CONSTRAINTS_VENV)/bin/$(MATURIN_BUILD) --interpreter $(CONSTRAINTS_VENV)/bin/python
	$(CONSTRAINTS_VENV)/bin/python $(PIP_INSTALL) "$$(echo $(WHEELS)/*.whl)[dev]"
	echo '# What `make test` installs, exactly; `make constraints` remakes this file.' > $(CONSTRAINTS_VENV)/pins
	$(CONSTRAINTS_VENV)/bin/python -m pip freeze --exclude triagestats | LC_ALL=C sort -f >> $(CONSTRAINTS_VENV)/pins
	mv $(CONSTRAINTS_VENV)/pins constraints.txt
	$(CONSTRAINTS_VENV)/bin/python $(PIP_INSTALL) --constraint constraints.txt $(DISTRIBUTED)
	echo '# What `make test-distributed` installs beside constraints.txt; `make constraints` remakes this file.' > $(CONSTRAINTS_VENV)/pins
	$(CONSTRAINTS_VENV)/bin/python -m pip freeze --exclude triagestats | grep -vxF -f constraints.txt | LC_ALL=C sort -f >> $(CONSTRAINTS_VENV)/pins
	mv $(CONSTRAINTS_VENV)/pins constraints-distributed.txt
	rm -rf $(CONSTRAINTS_VENV)

clean: ## remove what was built, the environments and the caches
	rm -rf target dist $(VENV) $(TEST_VENV) $(CONSTRAINTS_VENV) $(DISTRIBUTED_VENV)
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find python tests benches -name __pycache__ -prune -exec rm -rf {} +

# What is missing of the toolchain, in one line; nothing where nothing is.
define LOOK_FOR_TOOLS
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	found=$$($(PYTHON) --version 2>&1) || found='not found'; \
	echo "triagestats needs Python 3.11 or newer ($(PYTHON): $$found); install it, or name another: make $(MAKECMDGOALS) PYTHON=python3.12"; \
	exit; }; \
$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	echo "triagestats needs the modules venv and ensurepip of $(PYTHON); install them (on Debian and Ubuntu, the package python3-venv)"; \
	exit; }; \
found=$$(cargo --version >/dev/null 2>&1 && rustc --version 2>/dev/null | cut -d ' ' -f 2); \
echo "$$found" | awk -F . -v needed=$(RUST_NEEDED) '{ \
	split(needed, least, "."); \
	exit !($$1 + 0 > least[1] + 0 || ($$1 + 0 == least[1] + 0 && $$2 + 0 >= least[2] + 0)) }' || \
	echo "triagestats needs Rust $(RUST_NEEDED) or newer, with cargo (rustc: $${found:-not found}); install it with rustup, https://rustup.rs"
endef
stop-if = $(if $1,$(error $1))

# Comes before everything that builds.
toolchain:
	$(call stop-if,$(shell $(LOOK_FOR_TOOLS)))

$(VENV)/.installed: $(PACKAGE_FILES) constraints.txt | toolchain
	@$(VENV)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@echo "Building triagestats and installing it into $(VENV); the first time takes a minute or two."
	@$(VENV)/bin/python $(PIP_INSTALL) --constraint constraints.txt .
	@touch $@

# The environment of the tests is made anew for another Python and for other pins.
$(TEST_VENV)/.python-$(PYTHON_FOUND): constraints.txt | toolchain
	@echo "Making $(TEST_VENV); this takes a minute."
	@$(PYTHON) -m venv --clear $(TEST_VENV)
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt maturin ruff
	@touch $@

# Older wheels go first, and the new one always replaces the installed one: what is tested is this tree.
installed-wheel: toolchain $(TEST_VENV)/.python-$(PYTHON_FOUND)
	@rm -rf $(WHEELS)
	$(BIN)/$(MATURIN_BUILD) --interpreter $(BIN)/python
	@if ! [ $(TEST_VENV)/.dependencies -nt pyproject.toml ]; then \
		$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt "$$(echo $(WHEELS)/*.whl)[dev]" && \
		$(BIN)/python -m pip check --quiet && touch $(TEST_VENV)/.dependencies; fi
	@$(BIN)/python $(PIP_INSTALL) --force-reinstall --no-deps $(WHEELS)/*.whl
	@if $(BIN)/python -m pip freeze --exclude triagestats | grep -vxF -f constraints.txt; then \
		echo "not pinned in constraints.txt (above): run make constraints" >&2; exit 1; fi

$(DISTRIBUTED_VENV)/.python-$(PYTHON_FOUND): constraints.txt constraints-distributed.txt | installed-wheel
	@echo "Making $(DISTRIBUTED_VENV), with Spark and Dask; this takes some minutes."
	@$(PYTHON) -m venv --clear $(DISTRIBUTED_VENV)
	@$(DISTRIBUTED_VENV)/bin/python $(PIP_INSTALL) $(DISTRIBUTED_PINS) "$$(echo $(WHEELS)/*.whl)[dev]" $(DISTRIBUTED)
	@touch $@

# Spark runs on Java 17 or newer; where there is none it comes from the packages of the system.
define HAVE_JAVA
java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | awk '$$1 >= 17 { found = 1 } END { exit !found }'
endef
java:
	@$(HAVE_JAVA) || { \
		echo "Spark needs Java 17 or newer: installing default-jre-headless with apt-get."; \
		as_root=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
		$$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends default-jre-headless; }
	@$(HAVE_JAVA) || { \
		echo "make test-distributed needs a Java runtime, 17 or newer, on PATH, and could not install one; install it (on Debian and Ubuntu, the package default-jre-headless)" >&2; exit 1; }

# Takes a while, so it runs only where one of the two sides may have changed; in a folder of its own, since it would
# spoil the cache of mypy.
$(TEST_VENV)/.stub-agrees: python/triagestats/_native.pyi Cargo.toml Cargo.lock constraints.txt $(shell find rust) | installed-wheel
	cd $(TEST_VENV) && bin/python -P -m mypy.stubtest triagestats._native
	@touch $@
