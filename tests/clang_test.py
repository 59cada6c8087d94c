#!/usr/bin/env python3
"""Every C++ source goes through clang++ without a warning: clang_test.py BUILD SOURCE [PART OF A NAME]... Exits with 77 where there is no clang++.
With ccache sources are compiled to objects, which it keeps, so that only what changed is read again; without, their syntax is checked."""
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

build, source = (os.path.realpath(path) for path in sys.argv[1:3])
clang, ccache = shutil.which("clang++"), shutil.which("ccache")
if not clang:
    print("skipped: no clang++ here")
    sys.exit(77)


def check(entry):
    """What clang++ says about one entry of compile_commands.json; the compiler's own flags are g++'s."""
    flags, words = [], iter(shlex.split(entry["command"]))
    for word in words:
        if word == "-o":
            next(words)
        elif word.startswith(("-I", "-D", "-W", "-std=")):
            flags.append(word)
        elif word == "-isystem":
            flags += [word, next(words)]
    flags += ["-Wno-unknown-warning-option", "-Werror"]
    with tempfile.TemporaryDirectory() as folder:
        how = [ccache, clang, "-c", "-O0", "-o", os.path.join(folder, "object.o")] if ccache else [clang, "-fsyntax-only"]
        done = subprocess.run([*how, *flags, entry["file"]], cwd=entry["directory"], capture_output=True, text=True,
                              env=os.environ | {"CCACHE_BASEDIR": source})
    return done.stderr if done.returncode or done.stderr else ""


with open(os.path.join(build, "compile_commands.json")) as file:
    entries = {e["file"]: e for e in json.load(file) if e["file"].endswith(".cpp") and os.path.dirname(e["file"]).startswith(source)}
parts = sys.argv[3:] or [""]
entries = [e for name, e in sorted(entries.items()) if not name.startswith(build) and any(part in name for part in parts)]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    complaints = [text for text in pool.map(check, entries) if text]
print("\n".join(complaints))
print(f"{len(entries)} sources, {len(complaints)} with complaints")
sys.exit(bool(complaints) or not entries)
