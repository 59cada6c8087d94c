#!/usr/bin/env python3
"""Batteries of faults against the real program; each prints its figures and fails when one that must be 0 is not.

    make faults                              all, in full
    make faults FAULTS="kills --trials 500"  one, with a number of trials"""

import argparse
import importlib
import pathlib
import sys
import tempfile
import time

# trials in full, in short
BATTERIES = {
    "kills": (10000, 60),
    "power_cuts": (5000, 60),
    "failing_calls": (6000, 70),
    "company": (1, 0),
    "flips": (2000, 25),
    "hostile_files": (6000, 60),
    "same_run": (100, 2),
    "network_files": (200, 6),
    "window": (300, 6),
    "ranks": (300, 5),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("battery", nargs="*", help=f"{', '.join(BATTERIES)} (default: all)")
    parser.add_argument("--binary", required=True, type=pathlib.Path, help="saccade")
    parser.add_argument("--library", required=True, type=pathlib.Path, help="faulty_calls.so")
    parser.add_argument("--run-state", required=True, type=pathlib.Path)
    parser.add_argument("--run-follow", type=pathlib.Path, help="for network_files")
    parser.add_argument("--network", type=pathlib.Path, help="network_files.so, for the battery of that name")
    parser.add_argument("--workbench", type=pathlib.Path, help="saccade-workbench, for the battery window")
    parser.add_argument("--plugins", type=pathlib.Path, help="folder of generic/window_hand.so, likewise")
    parser.add_argument("--hang", type=pathlib.Path, help="hang.so, for the battery ranks")
    parser.add_argument("--sanitizer", type=pathlib.Path, help="libasan.so or another runtime that the programs are linked with: loaded first, and time "
                        "limits are ten times as long")
    parser.add_argument("--short", action="store_true", help="as a test: less than a minute each")
    parser.add_argument("--trials", type=int, help="instead of the number that is usual")
    parser.add_argument("--scenario", help="of kills and failing_calls, those whose names hold this")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="of same_run")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="of same_run, every N-th model from the K-th on, for N processes side by side")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="work in this folder and leave it")
    options = parser.parse_args()
    for name in options.battery:
        if name not in BATTERIES:
            parser.error(f"no battery {name}; there are {', '.join(BATTERIES)}")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import scenarios
    from program import Program
    for kinds in (scenarios.KILLED, scenarios.FAILING):
        kinds[:] = [kind for kind in kinds if not options.scenario or options.scenario in kind.name]
    if options.sanitizer:
        Program.sanitizer, Program.patience = options.sanitizer.resolve(), 10
    good = True
    for name in options.battery or BATTERIES:
        with tempfile.TemporaryDirectory(prefix="saccade-faults-") as folder:
            program = Program(options.binary.resolve(), options.library.resolve(), options.run_state.resolve(), options.keep or folder)
            program.run_follow_program, program.network = (path and path.resolve() for path in (options.run_follow, options.network))
            program.device, (part, parts) = options.device, map(int, options.part.split("/"))
            program.part = (part - 1, parts)
            program.hang = options.hang and options.hang.resolve()
            program.window = {"workbench": options.workbench and options.workbench.resolve(), "plugins": options.plugins and options.plugins.resolve()}
            trials = options.trials if options.trials is not None else BATTERIES[name][1 if options.short else 0]
            began = time.monotonic()
            good = importlib.import_module(name).run(program, trials, options.seed) and good
            print(f"-- {name}: {time.monotonic() - began:.0f} s", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
