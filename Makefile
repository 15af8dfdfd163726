# The commands of a developer's day. Each does its own set-up: packages, configure, build.
#
#   make demo    finds a bug in a bundled example and shows it
#   make test    builds everything and runs every test
#   make table   the papers' tables, from the programs in examples/
#   make bench   measures, and prints tables
#   make fuzz    runs the fuzz targets for FUZZ_SECONDS each
#   make lint    checks format and clang-tidy
#
# PRESET=debug|asan|tsan chooses another build than release.

PRESET ?= release
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)
FUZZ_SECONDS ?= 300

.PHONY: all demo test table bench fuzz lint format setup configure build clean
.DEFAULT_GOAL := all

all: build

setup:
	@scripts/setup

configure: setup
	@mkdir -p $(BUILD)
	@[ -f $(BUILD)/build.ninja ] || { echo "heddle: configuring $(BUILD)"; \
	  cmake --preset $(PRESET) >$(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log >&2; exit 1; }; }

build: configure
	@echo "heddle: building $(BUILD)"
	@cmake --build $(BUILD) -j $(JOBS)

test: build
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

demo: configure
	@echo "heddle: building what the demonstration needs"
	@cmake --build $(BUILD) -j $(JOBS) --target heddle_tools
	@scripts/demo $(BUILD)

table: configure
	@scripts/setup optional
	@echo "heddle: building the examples"
	@cmake --build $(BUILD) -j $(JOBS) --target heddle_table instrumented_examples native_examples
	@$(BUILD)/src/table/heddle_table run examples $(BUILD)/examples/instrumented $(BUILD)/examples $(BUILD)/table

bench: build
	@bench/run $(BUILD)

fuzz: build
	@tests/fuzz/run $(BUILD) $(FUZZ_SECONDS)

lint: setup
	@scripts/lint

format: setup
	@git ls-files '*.h' '*.cc' '*.c' | xargs clang-format-19 -i

clean:
	@rm -rf build
