# The short door. Everything else: cmake --list-presets, CONTRIBUTING.md.
BUILD := build/release
CTEST_FLAGS ?= --output-on-failure
WERROR := $(if $(CI),ON,OFF)

.PHONY: setup configure build demo tests test slow sanitize coverage faults fuzz bench bench-window containers lint format clean

setup:
	@packaging/setup

configure: setup
	@mkdir -p build && cmake --preset release -DSACCADE_WERROR=$(WERROR) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

build: configure
	@cmake --build $(BUILD) --target saccade saccade-workbench

demo: build
	@$(BUILD)/app/saccade demo

# What test runs.
tests:
	@packaging/setup --tests
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD)

test: tests
	@ctest --test-dir $(BUILD) -j 2 -LE slow $(CTEST_FLAGS)

# The tests that take minutes to hours: recall as attention learns it, and every study of the scale `tiny`, run to its report.
slow:
	@packaging/setup --tests
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --target saccade saccade-workbench shipped_studies_test task_presets_test recall_test
	@ctest --test-dir $(BUILD) -L slow $(CTEST_FLAGS)

# SANITIZERS="address,undefined" over all tests, or "thread"; SANITIZE_TESTS is ctest's regular expression of those to build and run.
SANITIZERS ?= address,undefined
SANITIZE_TESTS ?= .
sanitize:
	@packaging/setup --tests
	@tests/sanitize.sh $(SANITIZERS) '$(SANITIZE_TESTS)'

# Lines of each room that the tests run, or those that COVERAGE_TESTS="-R '^journal'" tells ctest. Needs gcovr.
coverage:
	@packaging/setup --coverage
	@mkdir -p build && cmake --preset coverage >build/coverage.log 2>&1 || { cat build/coverage.log; exit 1; }
	@cmake --build build/coverage
	@GCOV_ERROR_FILE=/dev/null ctest --test-dir build/coverage -j 2 $(COVERAGE_TESTS) $(CTEST_FLAGS); tests/coverage.py build/coverage .

# FAULTS="kills --trials 500" for one battery and its number of trials; all of them take hours.
faults: configure
	@cmake --build $(BUILD) --target saccade saccade-workbench faulty_calls run_state run_follow network_files hang window_hand
	@tests/faults/faults.py --binary $(BUILD)/app/saccade --library $(BUILD)/tests/faults/faulty_calls.so \
	  --run-state $(BUILD)/tests/faults/run_state --run-follow $(BUILD)/tests/faults/run_follow --network $(BUILD)/tests/faults/network_files.so \
	  --hang $(BUILD)/tests/hang.so --workbench $(BUILD)/app/saccade-workbench --plugins $(BUILD)/tests/faults/plugins $(FAULTS)

# FUZZ="--seconds 60 --targets task,queue --jobs 2" for some targets, shorter, more at a time (tests/fuzz/run.py). Needs clang.
FUZZ ?= --seconds 600
fuzz: setup
	@mkdir -p build && cmake --preset fuzz >build/fuzz.log 2>&1 || { cat build/fuzz.log; exit 1; }
	@cmake --build build/fuzz --target fuzz
	@tests/fuzz/run.py build/fuzz/tests/fuzz/fuzz . --finds build/fuzz/finds $(FUZZ)

# Images, where podman, docker or apptainer work.
containers: build
	@tests/containers_test.py . $(BUILD) --build

bench: build
	@$(BUILD)/app/saccade bench

bench-window: configure
	@cmake --build $(BUILD) --target window_bench
	@$(BUILD)/tests/window_bench

lint:
	@tests/layers_test.sh .
	@git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run -Werror
	@tests/clang_test.py $(BUILD) .
	@git ls-files '*.cpp' ':!tests' | xargs clang-tidy --quiet -p $(BUILD)

format:
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf build
