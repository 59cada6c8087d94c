"""Every k-th file call of every command that writes fails, once or from then on: no signal, no hang, no success that is not one, nothing that
was there before is harmed, and when calls work again the command does."""

import errno
import random
import shutil

from program import HANG, Figures
from scenarios import FAILING, MUST_BE_ZERO

SIGNALS, HANGS, FALSE, LINES = "ended by a signal", "that hung", "successes that were none", "without a line that says why"
KINDS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR, "short": "short"}


def trial(scenario, figures, number, faults):
    program = scenario.fresh(number)
    result = program.run(scenario.command(), faults=faults, seconds=30)
    scenario.settle(program)
    figures.trials += 1
    told = f"{faults}: exit {result.code}: {result.err}"
    if result.code == HANG:
        figures.fail(HANGS, told)
    elif not result.is_answer():
        figures.fail(SIGNALS, told)
    elif result.code == 0:
        figures.count("went on in spite of it")
        if not scenario.slow:  # those of the queue answer before their work is done
            check_success(scenario, program, figures, faults)
    else:
        figures.count("failed")
        if not result.err.startswith("saccade: "):
            figures.fail(LINES, told)
    scenario.problems(program, lambda kind, story: figures.fail(kind, f"{faults}: {story}"))
    shutil.rmtree(program.folder, ignore_errors=True)


def check_success(scenario, program, figures, faults):
    found = scenario.look(program)
    for kind, expected in scenario.expected.items():
        if kind in scenario.results and found[kind] != expected:
            from scenarios import difference

            figures.fail(FALSE, f"{faults}: {program.folder}: {difference(expected, found[kind])}")


def run(program, trials, seed):
    good = True
    weights = [0.2 if kind.slow else 1.0 for kind in FAILING]
    for kind, weight in zip(FAILING, weights):
        scenario, chance = kind(program), random.Random(seed)
        figures = Figures(f"file calls that fail while {scenario.name}", (SIGNALS, HANGS, FALSE, LINES, *MUST_BE_ZERO))
        count = max(4, round(trials * weight / sum(weights)))
        calls = scenario.number_of_calls("owsrtumcOR")
        figures.calls = calls
        for i in range(count):
            name = list(KINDS)[i % len(KINDS)]
            faults = {"KIND": KINDS[name], "AT": 1 + (i * calls + chance.randrange(calls)) // count, "LASTS": i // len(KINDS) % 2,
                      "CALLS": "owsrtumcOR"}
            if name == "EINTR":
                faults |= {"LASTS": 0, "CALLS": "wsR"}  # the others are not interrupted on Linux
                faults["AT"] = 1 + faults["AT"] % max(1, scenario.number_of_calls("wsR"))
            if name in ("ENOSPC", "short"):
                faults["CALLS"] = "owsrm"
                faults["AT"] = 1 + faults["AT"] % max(1, scenario.number_of_calls("owsrm"))
            trial(scenario, figures, i, faults)
        good = figures.ended() and good
    return good
