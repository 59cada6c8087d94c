#!/usr/bin/env python3
"""Runs the op checks of a build under compute-sanitizer, shared out over processes. Needs a GPU and the CUDA Toolkit.

  tests/gpu/sanitize.py FOLDER [--tool memcheck racecheck initcheck] [--program ops_check …] [--jobs N] [--limit SECONDS]

FOLDER holds the check programs (build/release/tests). Their cases only run, nothing is compared. Tensors get memory of their own
(SACCADE_SEPARATE_MEMORY), so that reading beside, after the end of, or before writing one shows. Library kernels (cuBLASLt) are not judged. Nor
are, by racecheck, threads ordered by a barrier in shared memory (mbarrier) at which one lane arrives for its warp, after __syncwarp: a probe of
32 writers, 32 readers and two barriers is clean where every lane arrives and full of hazards where lane 0 does, with
--racecheck-indirect-barrier-dependency too (compute-sanitizer of CUDA 13.0). UNJUDGED names the kernels, and they are counted apart.
Exit code 1 when there is a complaint, or the limit ended a process before its last case.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

PROGRAMS = [
    "attention_check", "avey_check", "ops_check", "stateful_parts_check", "delta_rule_check", "wkv_check", "wkv7_check",
    "mamba1_scan_check", "mamba1_linear_check", "mamba2_ssd_check", "taylor_attention_check",
]
UNJUDGED = re.compile(r"ping_pong::(mark_of|read_counts)\(|hopper::(backward::<unnamed>::(produce|consume)\(|get_bytes\(|<unnamed>::(produce|consume)<)")
COMPLAINT = re.compile(r"^=+ (?:Error: |Warning: )?(Invalid|Uninitialized|Race|Potential|Program hit|Out-of-bounds|Misaligned|Leaked)")


def complaints_in(lines):
    """Each complaint with the indented lines that belong to it, of the product's own kernels."""
    found = []
    for i, line in enumerate(lines):
        if COMPLAINT.match(line):
            end = i + 1
            while end < len(lines) and re.match(r"=+  ", lines[end]):
                end += 1
            found.append("\n".join(lines[i:end]))
    return [text for text in found if "saccade" in text]


def run(job, arguments):
    program, tool, shard, shards = job
    environment = dict(os.environ, SACCADE_TEST_SHARD=f"{shard}/{shards}", SACCADE_TEST_VERBOSE="1", SACCADE_TEST_COMPARE="0",
                       SACCADE_SEPARATE_MEMORY="1", SACCADE_SHORT_CASES="1", SACCADE_CUDNN="off")
    command = ["timeout", "-k", "5", str(arguments.limit), "stdbuf", "-oL", "compute-sanitizer", "--tool", tool,
               "--print-limit", "1000", "--error-exitcode", "9", str(pathlib.Path(arguments.folder) / program)]
    begin = time.time()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = done.stdout.splitlines()
    complaints = complaints_in(lines)
    unjudged = sum(tool == "racecheck" and bool(UNJUDGED.search(text)) for text in complaints)
    complaints = [text for text in complaints if tool != "racecheck" or not UNJUDGED.search(text)]
    cases = sum(bool(re.search(r" (ok|FAILED:)|^(ok|FAIL) ", line)) for line in lines)
    failed = sum(bool(re.search(r" FAILED:|^FAIL ", line)) for line in lines)
    return {"job": job, "seconds": time.time() - begin, "cut": done.returncode in (124, 137), "code": done.returncode,
            "complaints": complaints, "unjudged": unjudged, "cases": cases, "failed": failed, "output": done.stdout}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--tool", nargs="+", default=["memcheck", "racecheck", "initcheck"])
    parser.add_argument("--program", nargs="+", default=PROGRAMS)
    parser.add_argument("--shards", type=int, default=4, help="processes that share a program's cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--limit", type=int, default=600, help="seconds a process may take")
    parser.add_argument("--logs", help="a folder for what every process printed")
    arguments = parser.parse_args()
    jobs = [(program, tool, shard, arguments.shards) for tool in arguments.tool for program in arguments.program for shard in range(arguments.shards)]
    bad = False
    totals = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for result in concurrent.futures.as_completed([pool.submit(run, job, arguments) for job in jobs]):
            result = result.result()
            program, tool, shard, _ = result["job"]
            if arguments.logs:
                pathlib.Path(arguments.logs, f"{program}-{tool}-{shard}.log").write_text(result["output"])
            total = totals.setdefault((program, tool), [0, 0, 0, 0, 0, 0])
            for i, count in enumerate([result["cases"], result["failed"], len(result["complaints"]), result["unjudged"], result["cut"],
                                       result["seconds"]]):
                total[i] += count
            if result["complaints"] or result["failed"] or result["cut"]:
                bad = True
                print(f"{program} {tool} {shard}: exit code {result['code']} after {result['seconds']:.0f} s", *result["complaints"][:3],
                      sep="\n", flush=True)
    print(f"{'program':24} {'tool':10} cases failed complaints unjudged cut-short seconds")
    for (program, tool), (cases, failed, complaints, unjudged, cut, seconds) in sorted(totals.items()):
        print(f"{program:24} {tool:10} {cases:5} {failed:6} {complaints:10} {unjudged:8} {cut:9} {seconds:7.0f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
