#!/usr/bin/env python3
"""The images of packaging/: their recipes agree with each other, with packaging/setup and with the build; what they would hold is made from
this build and works; the script of docs/kubernetes.md runs, is told to end, and goes on.   containers_test.py SOURCE BUILD [--build]

--build (make containers) builds the images too, with podman or docker and with apptainer, as far as they are there and work."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

problems = []


def check(condition, story):
    if not condition:
        problems.append(story)


def instructions(containerfile):
    text = re.sub(r"\\\n", " ", containerfile.read_text())
    return [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]


def sections(definition):
    """[(header or %section, lines)] of an Apptainer definition file."""
    found = [("", [])]
    for line in definition.read_text().splitlines():
        if line.startswith("%"):
            found.append((line.strip(), []))
        elif line.startswith("Bootstrap:"):
            found.append(("header", [line]))
        elif line.strip() and not line.startswith("#"):
            found[-1][1].append(line.strip())
    return found


def recipes(source):
    containerfile, definition = source / "packaging/Containerfile", source / "packaging/saccade.def"
    lines, parts = instructions(containerfile), sections(definition)
    known = {"ARG", "FROM", "COPY", "WORKDIR", "RUN", "ENV", "VOLUME", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    check({line[0] for line in lines} <= known, f"{containerfile}: an instruction that is none of {known}")
    stages = [i for i, line in enumerate(lines) if line[0] == "FROM"]
    check(len(stages) == 2, "the Containerfile does not have two stages")
    runs = [line[1] for line in lines[stages[0]:stages[1]] if line[0] == "RUN"]
    post = [line for name, body in parts if name == "%post" for line in body]
    check(post[0] == "cd /src" and post[1:] == runs, f"the images are built by different commands: {runs} and {post}")
    check(runs[0] == "packaging/setup", "packages do not come from packaging/setup alone")
    everything = containerfile.read_text() + definition.read_text()
    check(not re.search(r"apt-get|apt install|dnf|pip", everything), "an image names packages; packaging/setup has the list")
    for word in re.findall(r"packaging/\w+(?:\.\w+)?", everything):
        check((source / word).exists(), f"{word} is not there")
    for script in ("setup", "bundle", "container_command"):
        check(os.access(source / "packaging" / script, os.X_OK), f"packaging/{script} cannot be run")
    presets = json.loads((source / "CMakePresets.json").read_text())["configurePresets"]
    cmake = (source / "CMakeLists.txt").read_text()
    for command in runs:
        for preset in re.findall(r"--preset (\w+)", command):
            check(any(p["name"] == preset for p in presets), f"there is no preset {preset}")
        for option in re.findall(r"-D(\w+)=", command):
            check(re.search(rf"(option|set)\({option} ", cmake), f"there is no option {option}")
    entry = json.loads(next(line[1] for line in lines if line[0] == "ENTRYPOINT"))
    check(entry == ["/opt/saccade/command/saccade"], f"the entry point is {entry}")
    check(any(f'exec {entry[0]} "$@"' in body for name, body in parts if name == "%runscript"), "the images start different programs")
    environment = dict(line[1].split("=", 1) for line in lines if line[0] == "ENV")
    check(environment["PATH"].startswith("/opt/saccade/command:"), "the program is not in PATH")
    check(environment["SACCADE_DATA"] == next(line[1] for line in lines if line[0] == "VOLUME"), "the volume is not the data folder")
    check((source / ".containerignore").read_text() == (source / ".dockerignore").read_text(), "podman and docker leave out different files")
    check("build" in (source / ".dockerignore").read_text().split(), "a build folder would go into the image")
    bases = [line[1].partition("=")[2].rpartition("/")[2] for line in lines if line[0] == "ARG"]
    arguments = {line for name, body in parts if name == "%arguments" for line in body}
    check({f"base={bases[0]}", f"runtime={bases[1]}"} == arguments, f"other bases: {bases} and {arguments}")
    return next(line[1] for line in lines[stages[1]:] if line[0] == "WORKDIR")


def bundle(source, build, folder, workdir):
    """/opt/saccade as the images have it. Returns the environment and folder that a container's process starts in."""
    opt = folder / "opt/saccade"
    opt.parent.mkdir(parents=True)
    for command in (["packaging/bundle", build, opt, "app/saccade"], ["packaging/container_command", opt]):
        result = subprocess.run([str(word) for word in command], cwd=source, capture_output=True, text=True)
        check(result.returncode == 0, f"{command}: {result.stderr}")
    where = folder / workdir.lstrip("/")
    check((where / "presets/parity-tiny.json").exists(), f"no presets in {workdir}")
    env = {"PATH": f"{opt}/command:/usr/bin:/bin", "SACCADE_DATA": str(folder / "data"), "SACCADE_CACHE": str(folder / "data/cache"), "HOME": "/nowhere"}
    (folder / "data").mkdir()
    for command in (["saccade", "--version"], ["saccade", "--help"], ["saccade", "plan", "presets/parity-tiny.json"]):
        result = subprocess.run(command, cwd=where, env=env, capture_output=True, text=True, timeout=300)
        check(result.returncode == 0, f"{command}: {result.returncode} {result.stderr}")
    libraries = subprocess.run(["ldd", opt / "bin/saccade"], env={"LD_LIBRARY_PATH": str(opt / "lib"), "PATH": "/usr/bin:/bin"}, capture_output=True,
                               text=True).stdout
    from_bundle = re.findall(r"=> (\S+)", libraries)
    outside = [path for path in from_bundle if not path.startswith(str(opt)) and not re.search(r"/(libc|libm|ld-linux\S*|libdl|librt|libpthread|libresolv)\.so", path)]
    check(not outside, f"not in the bundle: {outside}")
    return env, where


def steps(run):
    try:
        return (run / "journal.jsonl").read_bytes().count(b'"type":"step"')
    except FileNotFoundError:
        return 0


def kubernetes(source, folder, env, where):
    """The script of the Job's container, twice; each time it is told to end while it trains."""
    page = (source / "docs/kubernetes.md").read_text()
    yaml = re.search(r"```yaml\n(.*?)```", page, re.S).group(1)
    block = re.search(r"- \|\n((?: {14}.*\n)+)", yaml).group(1)
    script = re.sub(r"^ {14}", "", block, flags=re.M).replace("/data/", f"{folder}/data/")
    run = folder / "data/runs/first"
    for attempt in ("started", "started again"):
        before = steps(run)
        process = subprocess.Popen(["/bin/sh", "-c", script], cwd=where, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        end = time.monotonic() + 300
        while steps(run) < before + 5 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=180)
        check(process.returncode == 130, f"{attempt}: exit {process.returncode}: {err}")
        check(steps(run) >= before + 5 and list((run / "checkpoints").glob("step-*.h5")), f"{attempt}: no steps or no checkpoint")
    check("resumed from the checkpoint of step" in (run / "log.txt").read_text(), "it did not go on")
    for command in re.findall(r"`saccade ([a-z]+)", page):
        result = subprocess.run(["saccade", command, "--help"], cwd=where, env=env, capture_output=True)
        check(result.returncode == 0, f"docs/kubernetes.md names saccade {command}, which is not there")


def build_images(source):
    built = []
    for tool in ("podman", "docker"):
        if shutil.which(tool) and subprocess.run([tool, "info"], capture_output=True).returncode == 0:
            result = subprocess.run([tool, "build", "-f", "packaging/Containerfile", "-t", "saccade", "."], cwd=source)
            check(result.returncode == 0, f"{tool} build fails")
            check(subprocess.run([tool, "run", "--rm", "saccade", "--version"]).returncode == 0, f"{tool} run fails")
            built.append(tool)
            break
    if shutil.which("apptainer"):
        result = subprocess.run(["apptainer", "build", "--force", "build/saccade.sif", "packaging/saccade.def"], cwd=source)
        check(result.returncode == 0 and subprocess.run(["apptainer", "run", "build/saccade.sif", "--version"], cwd=source).returncode == 0, "apptainer fails")
        built.append("apptainer")
    print("images built with " + (", ".join(built) or "nothing: neither podman, docker nor apptainer works here"))


def main():
    source, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    workdir = recipes(source)
    with tempfile.TemporaryDirectory(prefix="saccade-containers-") as name:
        folder = pathlib.Path(name)
        env, where = bundle(source, build, folder, workdir)
        if not problems:
            kubernetes(source, folder, env, where)
    if "--build" in sys.argv:
        build_images(source)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
