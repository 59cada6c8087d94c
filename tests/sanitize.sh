#!/bin/sh
# Builds with sanitizers and runs tests: sanitize.sh address,undefined|thread [REGULAR EXPRESSION]. Fails when a test does, and every finding
# ends its process. Tests take several times as long, so their time limits are further (tests/CMakeLists.txt).
set -eu
cd "$(dirname "$0")/.."
sanitizers=$1 tests=${2:-.} name=$(echo "$1" | tr -d ,)
build=build/sanitize-$name
mkdir -p build
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" -DSACCADE_CUDA=OFF \
  "-DSACCADE_SANITIZE=$sanitizers" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
programs=$(ctest --test-dir "$build" -N -R "$tests" | sed -n 's/^ *Test *#[0-9]*: //p')
targets=$(for program in $programs; do ninja -C "$build" -t query "$program" >/dev/null 2>&1 && echo "$program"; done || true)
ninja -C "$build" saccade saccade-workbench faulty_calls run_state run_follow network_files hang window_hand $targets
here=$(pwd)
export ASAN_OPTIONS="suppressions=$here/tests/support/asan.supp:detect_stack_use_after_return=1:strict_string_checks=1" UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS="suppressions=$here/tests/support/lsan.supp:print_suppressions=0"
# Ranks in tests are forked and begin threads of their own.
export TSAN_OPTIONS="suppressions=$here/tests/support/tsan.supp:halt_on_error=1:second_deadlock_stack=1:die_after_fork=0"
ctest --test-dir "$build" -R "$tests" --output-on-failure -j 2
