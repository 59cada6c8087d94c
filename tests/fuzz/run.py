#!/usr/bin/env python3
"""Fuzzes every target for some seconds each and says what came of it; fails where one found something.

    tests/fuzz/run.py build/fuzz/tests/fuzz/fuzz . --seconds 600 [--targets journal,task] [--jobs 2] [--finds build/fuzz/finds]"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

# Where else than in tests/fuzz/seeds files of a target's kind lie.
OLD_RUN = "tests/fixtures/before-renaming/run"
SEEDS = {"config": "resources/presets", "study": "resources/studies", "recipe": "resources/figures", "published": "resources/published",
         "journal": OLD_RUN, "run_json": OLD_RUN, "run_journal": OLD_RUN}


def fuzz(target, options):
    """What is to be said, and whether nothing was found."""
    corpus = options.finds / f"{target}.corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = [options.sources / "tests/fuzz/seeds" / target] + ([options.sources / SEEDS[target]] if target in SEEDS else [])
    log = options.finds / f"{target}.log"
    with open(log, "w") as file:
        done = subprocess.run([options.program, f"-max_total_time={options.seconds}", f"-timeout={options.longest}", "-rss_limit_mb=2048",
                               "-max_len=65536", f"-seed={options.seed}", "-print_final_stats=1", f"-artifact_prefix={options.finds}/{target}-", corpus,
                               *filter(pathlib.Path.is_dir, seeds)], env=os.environ | {"FUZZ_TARGET": target}, stdout=file, stderr=file)
    text = log.read_text(errors="replace")
    units = re.search(r"number_of_executed_units: *(\d+)", text)
    if done.returncode or not units:
        told = [line for line in text.splitlines() if re.match(r"SUMMARY|Base64|.*runtime error", line)]
        return f"fuzz {target}: FOUND something, see {log}" + "".join(f"\nfuzz {target}: {line[:2000]}" for line in told), False
    return f"fuzz {target}: {units[1]} executions in {options.seconds} s, nothing found", True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--longest", type=int, default=10, help="seconds that one input may take")
    parser.add_argument("--seed", type=int, default=0, help="of the changes; 0: another one each time")
    parser.add_argument("--targets", help="some of them, with commas between")
    parser.add_argument("--first", type=int, default=0, help="number of the target to begin with, beyond the last one going round")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--finds", type=pathlib.Path, default=pathlib.Path("fuzz-finds"), help="folder for what they find")
    options = parser.parse_args()
    options.program = options.program.resolve()
    names = subprocess.run([options.program], env=os.environ | {"FUZZ_TARGET": "list"}, check=True, capture_output=True, text=True).stdout.split()
    if options.targets:
        known, names = names, options.targets.split(",")
        if unknown := set(names).difference(known):
            parser.error(f"no targets: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    good, first = bool(names), options.first % max(1, len(names))
    names = names[first:] + names[:first]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for said, nothing in pool.map(lambda name: fuzz(name, options), names):
            print(said, flush=True)
            good = good and nothing
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
