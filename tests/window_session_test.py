#!/usr/bin/env python3
"""A session with the real program on a display: keys and clicks as a person makes them, from an empty folder to quitting and coming back.

    window_session_test.py SACCADE WORKBENCH [--shots FOLDER] [--theme light|dark] [--size WxH] [--scale N]

Xvfb is the display and xdotool the hand (packaging/setup --tests has both; without them the test is skipped and says so). What is seen is read
from Xvfb's framebuffer, what was done from what the program writes: run directories, exported files, workbench.ini. At the end every page
must look as it did before the program was ended. With --shots, pictures of every station go to a folder.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

PAGES = ["runs", "configure", "live", "inspect", "compare", "figures", "studies"]  # Ctrl and their number
WAIT_S = 60
CHANGED = {"studies": 0.02}  # share of pixels that may be others after a restart, on other pages 0.006: the focus, free memory; the scroll there


class Fault(Exception):
    pass


def until(what, done, limit_s=WAIT_S):
    """Asks `done` until it says something true, and hands that back."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if found := done():
            return found
        time.sleep(0.05)
    raise Fault(f"waited {limit_s} s for this: {what}")


class Picture:
    """What a display shows: rows of bytes B, G, R, 0."""

    def __init__(self, xwd, width, height):
        head = struct.unpack(">25I", xwd[:100])
        start, row, colours = head[0], head[12], head[19]
        first = start + 12 * colours
        self.width, self.height = width, height
        self.rows = [xwd[first + y * row : first + y * row + 4 * width] for y in range(height)]

    def save(self, path):
        lines = []
        for row in self.rows:
            rgb = bytearray(3 * self.width)
            rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
            lines.append(b"\0" + bytes(rgb))
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", self.width, self.height, 8, 2, 0, 0, 0))
                         + chunk(b"IDAT", zlib.compress(b"".join(lines), 6)) + chunk(b"IEND", b""))

    def colours(self):
        """Different pixels in a row, at most: 1 of an empty display."""
        return max(len({row[i : i + 4] for i in range(0, len(row), 4)}) for row in self.rows[:: max(1, self.height // 100)])

    def differs(self, other, by=0):
        """Share of pixels in which two pictures differ, in a colour by more than `by` of 255."""
        count = 0
        for a, b in zip(self.rows, other.rows):
            if a != b:
                count += sum(a[i : i + 3] != b[i : i + 3] and any(abs(a[k] - b[k]) > by for k in (i, i + 1, i + 2)) for i in range(0, len(a), 4))
        return count / (self.width * self.height)


class Display:
    def __init__(self, folder, width, height):
        self.width, self.height, self.folder = width, height, folder
        read, write = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{width}x{height + 200}x24", "-fbdir", str(folder), "-nolisten", "tcp"],
            pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as said:
            number = said.readline().strip()
        if not number:
            raise Fault("Xvfb did not start")
        self.environment = dict(os.environ, DISPLAY=":" + number)

    def picture(self):
        return Picture((self.folder / "Xvfb_screen0").read_bytes(), self.width, self.height)

    def close(self):
        self.server.terminate()
        self.server.wait()


class Workbench:
    """The program, its window and the hand that drives it. Positions are shares of the window."""

    def __init__(self, display, options, folder, arguments):
        self.display, self.options = display, options
        self.settings = folder / "state/saccade/workbench.ini"
        environment = dict(display.environment, QT_QPA_PLATFORM="xcb", QT_SCALE_FACTOR=str(options.scale), XDG_STATE_HOME=str(folder / "state"),
                           XDG_CONFIG_HOME=str(folder / "config"), HOME=str(folder), SACCADE_DATA=str(folder / "data"),
                           SACCADE_CACHE=str(folder / "cache"), LC_ALL="C.UTF-8")
        for name in ("SACCADE_RUNS", "WAYLAND_DISPLAY"):
            environment.pop(name, None)
        self.process = subprocess.Popen([options.workbench, *arguments], env=environment)
        self.window = until("the window", lambda: self.ask("search", "--onlyvisible", "--name", "Saccade").split()[-1:] or None)[0]
        self.hand("windowmove", self.window, "0", "0")  # nothing manages windows here, and Qt leaves room for a frame
        self.hand("windowfocus", self.window)
        self.settled()

    def focus(self, title):
        """A window by its title, which a window manager would give the keys to."""
        self.hand("windowfocus", until(title, lambda: self.ask("search", "--onlyvisible", "--name", title).split()[-1:] or None)[0])

    def ask(self, *words):
        return subprocess.run(["xdotool", *words], env=self.display.environment, capture_output=True, text=True).stdout

    def hand(self, *words):
        if self.process.poll() is not None:
            raise Fault(f"the window ended with {self.process.returncode}")
        subprocess.run(["xdotool", *words], env=self.display.environment, check=True, stdout=subprocess.DEVNULL)

    def key(self, *names):
        self.hand("key", *names)
        time.sleep(0.05)

    def type(self, text):
        self.hand("type", "--delay", "4", text)

    def at(self, x, y):
        return str(int(x * self.options.scale)), str(int(y * self.options.scale))

    def click(self, x, y, button="1"):
        self.hand("mousemove", *self.at(x, y), "click", button)

    def rest(self):
        """The pointer where it points at nothing."""
        width, height = self.options.size
        self.hand("mousemove", *self.at(width - 1, height - 1))

    def remembered(self, key):
        """A value of workbench.ini as it stands there: "live/zoom/loss"."""
        name = key.replace("/", "\\") + "="
        try:
            lines = self.settings.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None
        section = "place" if not key.startswith("General/") else "General"
        name, inside = name.removeprefix("General\\"), section == "General"
        for line in lines:
            if line.startswith("["):
                inside = line == f"[{section}]"
            elif inside and line.startswith(name):
                return line[len(name) :]
        return None

    def settled(self):
        """What is seen once nothing moves any more but a blinking cursor."""
        before, since = self.display.picture(), time.monotonic()
        end = since + WAIT_S
        while time.monotonic() < end:
            time.sleep(0.25)
            now = self.display.picture()
            if now.colours() < 4 or now.differs(before) > 2e-4:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > 1:
                return now
        raise Fault("the window does not come to rest")

    def page(self, name):
        self.key(f"ctrl+{PAGES.index(name) + 1}")
        until(f"page {name}", lambda: self.remembered("General/page") == name)

    def command(self, words):
        """What the palette finds first for these words."""
        self.key("ctrl+k")
        self.type(words)
        time.sleep(0.1)
        self.key("Return")

    def quit(self):
        self.key("ctrl+q")
        until("the end of the program", lambda: self.process.poll() is not None, 10)
        if self.process.returncode != 0:
            raise Fault(f"the window ended with {self.process.returncode}")


class Session:
    def __init__(self, options, folder):
        self.options, self.folder, self.stations, self.open = options, folder, 0, None
        self.runs = folder / "runs"
        self.runs.mkdir()
        self.import_corpus()
        width, height = (side * options.scale for side in options.size)
        self.display = Display(folder, width, height)  # the window fills what is seen of it

    def import_corpus(self):
        with open(self.folder / "text.jsonl", "w", encoding="utf-8") as file:
            for i in range(60):
                for domain, text in (("prose", f"Rain fell on the hills for {i} days, and the road was washed away. "),
                                     ("code", f"for (int i = 0; i < {i}; ++i) sum += values[i]; ")):
                    file.write(json.dumps({"text": text * 4, "meta": {"redpajama_set_name": domain}}) + "\n")
        environment = dict(os.environ, SACCADE_DATA=str(self.folder / "data"), SACCADE_CACHE=str(self.folder / "cache"))
        subprocess.run([self.options.saccade, "-q", "corpus", "import", "mine", str(self.folder / "text.jsonl"), "--validation-share", "0.3"],
                       env=environment, check=True)

    @staticmethod
    def config(name, mixer, steps):
        architecture = {"block": "llama", "mixer": mixer, "width": 16, "layers": 2, "heads": 2}
        if mixer == "top1_chunk":
            architecture["chunk"] = 16
        return {"name": name, "threads": 1, "device": "cpu", "architecture": architecture,
                "data": {"corpus": "mine", "train": ["prose"], "ood": ["code"], "tokenizer": "bytes", "sequence_length": 64},
                "training": {"steps": steps, "batch_tokens": 128, "warmup_steps": 2, "evaluate_every": 20, "evaluation_tokens": 4096,
                             "probe_every": 40, "checkpoint_every": 100, "capture_tokens": 64}}

    def station(self, name):
        self.open.rest()
        picture = self.open.settled()
        if picture.colours() < 8:
            raise Fault(f"{name}: hardly anything is seen")
        if self.options.shots:
            style = f"{self.options.theme}-{self.options.size[0]}-{self.options.scale}x"
            picture.save(self.options.shots / f"{style}-{self.stations:02}-{name}.png")
        self.stations += 1
        return picture

    def started(self, arguments):
        self.open = Workbench(self.display, self.options, self.folder, arguments)

    def states(self):
        found = {}
        for file in self.runs.glob("*/run.json"):
            try:
                run = json.loads(file.read_text(encoding="utf-8"))
                found[run["config"]["name"]] = run["state"]
            except (json.JSONDecodeError, KeyError, FileNotFoundError):
                pass
        return found

    def start_run(self, config):
        """Into the JSON of the page Configure, and off."""
        self.open.key("ctrl+n")
        until("page configure", lambda: self.open.remembered("General/page") == "configure")
        self.open.settled()
        if self.open.remembered("configure/view") != "json":
            raise Fault("the page Configure has forgotten the view")
        self.open.click(0.55 * self.options.size[0], 0.4 * self.options.size[1])
        self.open.key("ctrl+a")
        self.open.type(json.dumps(config))
        until("the typed config", lambda: f'\\"name\\": \\"{config["name"]}\\"' in (self.open.remembered("configure/draft") or "")
              or f'\\"name\\":\\"{config["name"]}\\"' in (self.open.remembered("configure/draft") or ""))
        self.station("configure-" + config["name"])
        self.open.key("ctrl+Return")
        until("the run", lambda: config["name"] in self.states())
        until("page live", lambda: self.open.remembered("General/page") == "live")

    def see_json(self):
        """Clicks along the head of the page until the JSON is seen."""
        width, _ = self.options.size
        for x in range(int(0.9 * width), int(0.3 * width), -24):
            self.open.click(x, 44)
            time.sleep(0.8)  # what is remembered is written after half a second
            if self.open.remembered("configure/view") == "json":
                return
        raise Fault("no click on the head of the page Configure showed the JSON")

    def watch(self):
        """A run that is drawn while it goes on."""
        before = self.display.picture()
        until("new points of the run", lambda: self.display.picture().differs(before) > 5e-4 or "finished" in self.states().values())
        self.station("live-running")
        until("the end of all runs", lambda: set(self.states().values()) == {"finished"}, 180)
        self.station("live-finished")

    def centre(self):
        width, height = self.options.size
        return 0.62 * width, 0.33 * height

    def zoom(self):
        self.open.page("live")
        self.open.key("l")
        until("a logarithmic axis", lambda: self.open.remembered("live/log_y") == "1")
        self.open.hand("mousemove", *self.open.at(*self.centre()), "click", "--repeat", "3", "4")
        until("a part of the chart", lambda: " / " in (self.open.remembered("live/zoom/loss") or ""))
        self.station("live-zoomed")

    def rail(self):
        """The page Inspect by a click on the rail at the left."""
        _, height = self.options.size
        for y in range(40, height // 2, 12):
            self.open.click(30, y)
            time.sleep(0.2)
            if self.open.remembered("General/page") == "inspect":
                return
        raise Fault("no click on the rail opened Inspect")

    def inspect(self):
        self.rail()
        self.open.settled()
        width, height = self.options.size
        until("a query that was clicked", lambda: [self.open.click(0.62 * width, 0.62 * height), time.sleep(0.3),
                                                   (self.open.remembered("query") or "-1") != "-1"][2], 10)
        query = int(self.open.remembered("query"))
        self.open.key("Left", "Left", "Left")
        until("the query three to the left", lambda: int(self.open.remembered("query")) == max(0, query - 3))
        self.open.key("Next")
        until("layer 1", lambda: self.open.remembered("layer") == "1")
        self.open.key("shift+Right")
        until("head 1", lambda: self.open.remembered("head") == "1")
        self.station("inspect")

    def compare(self):
        self.open.page("compare")
        self.station("compare")
        path = self.folder / "trajectories.pdf"
        self.open.click(*self.centre(), "3")
        time.sleep(0.3)
        self.open.key("Down", "Return")
        self.open.focus("Save figure")
        self.station("export")
        self.open.key("ctrl+a")
        self.open.type(str(path))
        self.open.key("Return")
        until("the exported file", path.exists)
        if not until("its content", path.read_bytes).startswith(b"%PDF"):
            raise Fault("the exported file is no PDF")
        self.open.settled()
        self.open.hand("windowfocus", self.open.window)

    def write(self):
        """A setting of a run that is not started, found by its name."""
        self.open.page("configure")
        self.open.command("training steps setting")
        self.open.settled()
        self.open.key("ctrl+a")
        self.open.type("4321")
        self.open.key("Tab")
        until("the draft", lambda: "4321" in (self.open.remembered("configure/draft") or ""))
        self.open.command("dark" if self.options.theme == "light" else "light")
        other = "dark" if self.options.theme == "light" else "light"
        until("the other theme", lambda: self.open.remembered("General/theme") == other)
        self.station("other-theme")
        self.open.command(self.options.theme)
        until("the theme again", lambda: self.open.remembered("General/theme") == self.options.theme)

    def all_pages(self, when):
        seen = {}
        for page in PAGES:
            self.open.page(page)
            seen[page] = self.station(f"{when}-{page}")
        return seen

    def run(self):
        width, height = self.options.size
        self.started(["--runs", str(self.runs), "--theme", self.options.theme, "--size", f"{width}x{height}", "--page", "live"])
        self.station("empty")
        self.open.key("ctrl+n")
        until("page configure", lambda: self.open.remembered("General/page") == "configure")
        self.station("configure-form")
        self.see_json()
        self.start_run(self.config("first", "attention", 3000))
        self.watch()
        self.start_run(self.config("second", "top1_chunk", 200))
        until("the end of all runs", lambda: len(self.states()) == 2 and set(self.states().values()) == {"finished"}, 180)
        self.zoom()
        self.inspect()
        self.compare()
        self.write()
        time.sleep(31)  # so long a note that offers something stays
        before = self.all_pages("before")
        self.open.page("inspect")
        place = {key: self.open.remembered(key) for key in ("query", "layer", "head", "run", "live/zoom/loss", "live/log_y", "configure/draft")}
        self.open.quit()

        self.started([])
        if self.open.remembered("General/page") != "inspect":
            raise Fault("the page is another one after a restart")
        after = self.all_pages("after")
        for key, value in place.items():
            if self.open.remembered(key) != value:
                raise Fault(f"{key} was {value} and is {self.open.remembered(key)}")
        for page in PAGES:
            share = after[page].differs(before[page], 40)
            if share > CHANGED.get(page, 0.006):
                raise Fault(f"{100 * share:.2f} % of the pixels of the page {page} are not what they were")
        self.open.quit()


def tells_without_display(workbench):
    """What is only printed needs no display."""
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    for option in ("--help", "--version"):
        told = subprocess.run([workbench, option], env=environment, capture_output=True, text=True, timeout=WAIT_S)
        if told.returncode != 0 or "saccade-workbench" not in told.stdout:
            raise Fault(f"{option} without a display: exit code {told.returncode}, {told.stderr.strip()}")


def size(text):
    return tuple(int(side) for side in text.split("x"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("saccade")
    parser.add_argument("workbench")
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--size", type=size, default=(1200, 800))
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()
    tells_without_display(options.workbench)
    missing = [name for name in ("Xvfb", "xdotool") if not shutil.which(name)]
    if missing:
        print(f"skipped: {' and '.join(missing)} missing; packaging/setup --tests installs what is needed")
        return 77
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="saccade-session-") as folder:
        session = Session(options, pathlib.Path(folder))
        try:
            session.run()
        except Fault as fault:
            print(f"after station {session.stations}: {fault}", file=sys.stderr)
            if options.shots:
                session.display.picture().save(options.shots / "fault.png")
            return 1
        finally:
            if session.open and session.open.process.poll() is None:
                session.open.process.send_signal(signal.SIGTERM)
                session.open.process.wait()
            session.display.close()
    print(f"{session.stations} stations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
