#!/usr/bin/env python3
"""Pictures of every page: light and dark, 100 % and 200 %, small and large, with 1, 20 and 200 runs; to be looked at.

    window_pictures.py BUILD FOLDER [--pages runs,live] [--runs 1,20] [--themes dark] [--sizes 1000x700] [--scales 2]

BUILD holds app/saccade, app/saccade-workbench and tests/window_bench (target window_bench). FOLDER takes the runs, which are made once (three
are trained, the others made up), and the pictures: PAGE-RUNS-THEME-SIZE-SCALEx.png. Prints a line for each that could not be made.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

PAGES = ["runs", "configure", "live", "inspect", "compare", "figures", "studies", "hosts"]
PRESETS = ["transformer-pp-tiny", "top1-chunk-exact-tiny", "avey-tiny"]
POINTS = 2000
ROOT = pathlib.Path(__file__).resolve().parent.parent


def train(saccade, folder):
    """Real runs, which alone have captures and checkpoints."""
    for preset in PRESETS:
        if not (folder / preset / "results.h5").exists():
            shutil.rmtree(folder / preset, ignore_errors=True)
            subprocess.run([saccade, "-q", "train", ROOT / f"resources/presets/{preset}.json", "--out", folder / preset], check=True)


def make_runs(bench, trained, folder, count):
    """So many runs: one trained, or the trained ones and made-up ones."""
    if folder.exists():
        return
    names = PRESETS[:1] if count == 1 else PRESETS
    made = folder.with_name(folder.name + "-made")
    if count > len(names):
        subprocess.run([bench, "--make", made, str(count - len(names)), str(POINTS)], check=True)
        made.rename(folder)
    folder.mkdir(exist_ok=True)
    for name in names:
        shutil.copytree(trained / name, folder / name)


def shoot(workbench, folder, options, file):
    page, theme, size, scale = options
    environment = dict(os.environ, QT_QPA_PLATFORM="offscreen", QT_SCALE_FACTOR=str(scale))
    return subprocess.run([workbench, "--runs", folder, "--page", page, "--theme", theme, "--size", size, "--screenshot", file],
                          env=environment, stderr=subprocess.DEVNULL, timeout=300).returncode == 0


def main():
    words = lambda text: text.split(",")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pages", type=words, default=PAGES)
    parser.add_argument("--runs", type=words, default=["1", "20", "200"])
    parser.add_argument("--themes", type=words, default=["light", "dark"])
    parser.add_argument("--sizes", type=words, default=["1000x700", "1920x1200"])
    parser.add_argument("--scales", type=words, default=["1", "2"])
    options = parser.parse_args()
    build, folder = options.build.resolve(), options.folder.resolve()
    trained = folder / "trained"
    trained.mkdir(parents=True, exist_ok=True)
    train(build / "app/saccade", trained)
    bad = 0
    for count in options.runs:
        runs = folder / f"runs-{count}"
        make_runs(build / "tests/window_bench", trained, runs, int(count))
        for page in options.pages:
            for theme in options.themes:
                for size in options.sizes:
                    for scale in options.scales:
                        file = folder / f"{page}-{count}-{theme}-{size}-{scale}x.png"
                        if not shoot(build / "app/saccade-workbench", runs, (page, theme, size, scale), file):
                            print(f"no picture: {file.name}", file=sys.stderr)
                            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
