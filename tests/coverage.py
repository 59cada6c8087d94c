#!/usr/bin/env python3
"""Prints the share of the lines of every room that ran since a build with SACCADE_COVERAGE=ON, as gcovr counts them, and the files with most
lines that did not. Fails where a room is below its aim.

    tests/coverage.py build/coverage ."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

AIMS = {"kernels": 90, "models": 90, "analysis": 90, "ui": 80}  # percent of lines; kernels: what CPUs run


def counted(build, sources):
    """{file: (lines that ran, lines)}"""
    command = ["gcovr", "--root", sources, "--object-directory", build, "--json-summary", "-", "-j", "2", "--exclude", ".*_autogen.*",
               "--gcov-ignore-parse-errors"]  # counts that threads lost to each other
    for room in AIMS:
        command += ["--filter", f"{sources}/{room}/"]
    report = json.loads(subprocess.run(command + [build], check=True, capture_output=True, text=True).stdout)
    return {file["filename"]: (file["line_covered"], file["line_total"]) for file in report["files"] if "/cuda/" not in file["filename"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=15, help="how many files to name")
    options = parser.parse_args()
    files = counted(str(options.build.resolve()), str(options.sources.resolve()))
    rooms = collections.defaultdict(lambda: [0, 0])
    for name, (ran, lines) in files.items():
        room = rooms[name.split("/")[0]]
        room[0] += ran
        room[1] += lines
    print(f"{'room':10} {'lines':>7} {'ran':>7} {'share (%)':>10} {'aim (%)':>8}")
    good = True
    for room, aim in AIMS.items():
        ran, lines = rooms[room]
        share = 100 * ran / lines if lines else 0
        good = good and share >= aim
        print(f"{room:10} {lines:7} {ran:7} {share:10.1f} {aim:8}")
    print("\nmost lines that did not run:")
    for name, (ran, lines) in sorted(files.items(), key=lambda item: item[1][0] - item[1][1])[: options.files]:
        print(f"{lines - ran:5} of {lines:4}  {name}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
