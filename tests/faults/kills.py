"""kill -9 at every k-th file call and at random instants of every command that writes: the next command works, nothing acknowledged is lost,
nothing is left over, and the result is that of a command that was not killed."""

import random
import shutil
import signal

from program import Figures
from scenarios import KILLED, MUST_BE_ZERO

PROCESSES = {"queue": ["queue add", "queue work", " train ", " resume "], "study": ["study start", "queue work", " train "]}


def trial(scenario, figures, number, faults=None, instant=None):
    program = scenario.fresh(number)
    marks = program.folder.parent / "killed"
    marks.unlink(missing_ok=True)
    result = program.run(scenario.command(), faults=faults and faults | {"COUNT": marks}, kill_after=instant)
    scenario.settle(program)
    figures.trials += 1
    if faults:
        figures.count("processes killed", marks.read_text().count("killed") if marks.exists() else 0)
    else:
        figures.count("processes killed", int(result.code == -signal.SIGKILL))
    scenario.problems(program, lambda kind, story: figures.fail(kind, f"{faults or instant}: {story}"))
    shutil.rmtree(program.folder, ignore_errors=True)


def run(program, trials, seed):
    """`trials` in all: two thirds of them at file calls that lie evenly, the rest at random instants."""
    good = True
    weights = [0.25 if kind.slow else 1.0 for kind in KILLED]
    for kind, weight in zip(KILLED, weights):
        scenario, chance = kind(program), random.Random(seed)
        figures = Figures(f"kill -9 while {scenario.name}", MUST_BE_ZERO)
        count = max(2, round(trials * weight / sum(weights)))
        at_calls = max(1, 2 * count // 3)
        calls = scenario.number_of_calls()
        figures.calls = calls
        for i in range(at_calls):
            at = 1 + (i * calls + chance.randrange(calls)) // at_calls
            faults = {"KIND": "kill", "AT": at}
            if scenario.name in PROCESSES:
                process = PROCESSES[scenario.name][i % len(PROCESSES[scenario.name])]
                # the short ones make few calls, the trainer most
                faults = {"KIND": "kill", "AT": at if "train" in process else 1 + at % 40, "PROCESS": process}
            trial(scenario, figures, i, faults=faults)
        for i in range(at_calls, count):
            trial(scenario, figures, i, instant=chance.uniform(0.002, max(0.02, scenario.seconds)))
        good = figures.ended() and good
    return good
