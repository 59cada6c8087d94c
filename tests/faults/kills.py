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
    result = program.run(scenario.command(), faults=faults, kill_after=instant)
    scenario.settle(program)
    figures.trials += 1
    if result.code == -signal.SIGKILL:
        figures.count("killed")
    elif result.code != 0:  # that of a process which the command waited for is told by the command
        figures.count("killed in a process of its own")
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
        figures.count("file calls in all", calls)
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
