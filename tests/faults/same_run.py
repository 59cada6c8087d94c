"""The same run: ten steps at once, or a process each for the first one, five or nine and the rest, on other numbers of threads, end with the
same journal, weights and state of the optimizer, byte for byte; and so do runs that are killed again and again. On a GPU (--device cuda) the
models are of a size that its fast kernels take, and a second process takes the place of other numbers of threads."""

import json
import random
import shutil
import signal

from program import Figures, copy_folder, tiny_config

OTHER, REFUSED = "that ended with other bytes", "that could not be gone on with"
SPLITS = (1, 5, 9)
SMALL = {"width": 16, "layers": 2, "heads": 2, "chunk": 16, "split": 16, "top_k": 2, "state": 8}
LARGE = {"width": 128, "layers": 2, "heads": 2, "chunk": 64, "split": 64, "top_k": 4}  # the state: as usual


def sizes_of(program):
    return LARGE if program.device == "cuda" else SMALL


def hybrids(sizes):
    chunk = sizes["chunk"]
    return (f'based(layout=["conv"]), top1_chunk(chunk={chunk}), top1_element, attention(heads=4)', f"2 mamba2, attention(window={chunk})",
            "rwkv7, deltanet, gated_deltanet, parallel")


def config_of(program, architecture, **training):
    if program.device == "cpu":
        return tiny_config(**training) | {"architecture": architecture}
    config = tiny_config(**({"batch_tokens": 2048} | training)) | {"device": program.device, "architecture": architecture}
    config["data"]["sequence_length"] = 512
    return config


def cases(program):
    """Name, architecture and settings of training: every entry of the registries."""
    listed = program.good(["--json", "architectures"]).json()
    blocks = [entry["id"] for entry in listed if entry["kind"] == "block"]
    sizes = sizes_of(program)
    tiny = {"block": "llama", "mixer": "attention"} | {name: sizes[name] for name in ("width", "layers", "heads")}
    for entry in listed:
        name = entry["id"]
        if entry["kind"] == "mixer":
            for block in ("llama",) if name != "attention" else blocks:
                yield f"{name} in {block}", fitting(program, {"block": block, "mixer": name}), {}
        elif entry["kind"] == "whole":
            yield name, fitting(program, {"block": name}), {}
    for layers in hybrids(sizes):
        yield f"hybrid {layers}", {"block": "llama", "width": sizes["width"], "heads": 2, "layers": layers}, {}
    for optimizer in ("adamw", "muon"):
        for schedule in ("constant", "cosine", "linear", "wsd"):
            yield f"{optimizer}, {schedule}", tiny, {"optimizer": optimizer, "schedule": schedule}
    yield "accumulation, growing batch", tiny, {"gradient_accumulation": 2, "batch_warmup_tokens": 64 if program.device == "cpu" else 1024, "batch_warmup_steps": 7}
    yield "activation checkpointing", tiny, {"activation_checkpointing": True}
    yield "other seeds", tiny, {"seed": 7}
    yield "the largest seed", tiny, {"seed": 2**31 - 1}


def fitting(program, architecture):
    """With as many of the small sizes as this architecture has."""
    sizes = dict(sizes_of(program))
    while True:
        program.path("plan.json").write_text(json.dumps(config_of(program, architecture | sizes)))
        result = program.run(["plan", "plan.json"])
        unwanted = [name for name in sizes if f"/architecture/{name}" in result.err or f'"{name}"' in result.err]
        if result.code == 0 or not unwanted:
            return architecture | sizes
        for name in unwanted:
            del sizes[name]


def crash_behind(program, run, step):
    """As if the process had been killed behind the checkpoint of that step, and later ones had not been written."""
    for path in run.joinpath("checkpoints").iterdir():
        if int(path.name[len("step-") : -len(".h5")]) > step:
            path.unlink()
    info = json.loads(run.joinpath("run.json").read_text())
    run.joinpath("run.json").write_text(json.dumps(info | {"state": "running"}))


def equal(state, expected):
    last = str(max(map(int, expected["checkpoints"])))
    return state.get("records") == expected["records"] and state["checkpoints"].get(last) == expected["checkpoints"][last]


def splits(program, figures, name, architecture, training):
    config = config_of(program, architecture, steps=10, evaluate_every=5, probe_every=5, checkpoint_every=5, keep_checkpoints=list(SPLITS), **training)
    program.path("case.json").write_text(json.dumps(config))
    for run in ("whole", "parts"):
        shutil.rmtree(program.path(run), ignore_errors=True)
    whole = program.run(["train", "case.json", "--out", "whole"], seconds=120)
    if whole.code != 0:
        figures.fail(REFUSED, f"{name}: {whole.err}")
        return
    expected = program.run_state(program.path("whole"))
    for i, step in enumerate(SPLITS):
        copy_folder(program.path("whole"), program.path("parts"))
        crash_behind(program, program.path("parts"), step)
        result = program.run(["resume", "parts"], seconds=120)
        figures.trials += 1
        if result.code != 0:
            figures.fail(REFUSED, f"{name}, {step} + {10 - step}: {result.err}")
        elif not equal(program.run_state(program.path("parts")), expected):
            figures.fail(OTHER, f"{name}, {step} + {10 - step}")
    shutil.rmtree(program.path("parts"))
    threads = program.run(["train", "case.json", "--out", "parts", "--set", f"threads={2 + figures.trials % 2}"], seconds=120)
    figures.trials += 1
    if threads.code != 0 or program.run_state(program.path("parts"))["records"] != expected["records"]:
        figures.fail(OTHER, f"{name} on other threads: {threads.err}")


def killed_often(program, trials, seed):
    figures = Figures("runs killed until they had finished", (OTHER, REFUSED))
    sizes = sizes_of(program)
    architecture = {"block": "llama", "mixer": "attention"} | {name: sizes[name] for name in ("width", "layers", "heads")}
    config = config_of(program, architecture, steps=60, evaluate_every=20, probe_every=20, checkpoint_every=7)
    program.path("case.json").write_text(json.dumps(config))
    shutil.rmtree(program.path("whole"), ignore_errors=True)
    whole = program.good(["train", "case.json", "--out", "whole"])
    expected, chance = program.run_state(program.path("whole")), random.Random(seed)
    for _ in range(trials):
        shutil.rmtree(program.path("parts"), ignore_errors=True)
        figures.trials += 1
        for _ in range(1000):
            begun = program.path("parts", "run.json").exists()
            command = ["resume", "parts"] if begun else ["train", "case.json", "--out", "parts"]
            result = program.run(command, kill_after=whole.seconds * chance.uniform(0.2, 0.8))
            if result.code == 0:
                break
            if result.code != -signal.SIGKILL:
                figures.fail(REFUSED, result.err)
                break
            figures.count("kills")
        if not equal(program.run_state(program.path("parts")), expected):
            figures.fail(OTHER, "killed")
    return figures.ended()


def run(program, trials, seed):
    program.import_corpus()
    figures = Figures("resumed in a new process after 1, 5 and 9 of 10 steps, and on 2 or 3 threads", (OTHER, REFUSED))
    chosen = list(cases(program))
    short = trials < 5
    part, parts = program.part
    for i, (name, architecture, training) in enumerate(chosen):
        if i % parts == part and (not short or i % 4 == 0 or "hybrid" in name):
            splits(program, figures, name, architecture, training)
            figures.count("models, optimizers and schedules")
    good = figures.ended()
    return (part > 0 or killed_often(program, trials, seed)) and good
