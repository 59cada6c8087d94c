#!/bin/sh
# Fuzzes every target for some seconds each: run.sh PROGRAM SOURCES SECONDS [FOLDER for what it finds]. Fails when one found something.
# FUZZ_TARGETS="journal task" for some of them.
set -u
program=$1 sources=$2 seconds=$3 folder=${4:-fuzz-finds} failed=0
mkdir -p "$folder"
targets=${FUZZ_TARGETS:-$(FUZZ_TARGET=list "$program")} || exit 2
for target in $targets; do
  mkdir -p "$folder/$target.corpus"
  set -- "$folder/$target.corpus"
  for seeds in "$sources/tests/fuzz/seeds/$target" $(case $target in
    config) echo "$sources/resources/presets" ;; study) echo "$sources/resources/studies" ;; recipe) echo "$sources/resources/figures" ;;
    journal | run_json | run_journal) echo "$sources/tests/fixtures/before-renaming/run" ;; esac); do
    [ -d "$seeds" ] && set -- "$@" "$seeds"
  done
  if FUZZ_TARGET=$target "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$folder/$target-" "$@" >"$folder/$target.log" 2>&1; then
    echo "fuzz $target: $(sed -n 's/.*number_of_executed_units: *//p' "$folder/$target.log") executions in $seconds s, nothing found"
  else
    echo "fuzz $target: FOUND something, see $folder/$target.log"
    failed=1
  fi
done
exit $failed
