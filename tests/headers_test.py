#!/usr/bin/env python3
"""Every op header states its equation, what it throws and its source; no comment cites a page that is not in the project.

An op header declares, outside any class, a function whose first parameter is `Tape& tape`. Its comments hold
  an equation   "///   … = …", indented, or "/// y = …" at the beginning of a line ("←" is as good as "=")
  errors        the word "Throws" ("Throws nothing of its own" where that is so)
  a source      "arXiv:NUMBER" or "Source: …"
"""
import pathlib
import re
import sys

ENGINE = ("side_stream.h",)  # these take a tape without being ops
OTHERS = ("kernels/ops/avey/processor_stages.h", "kernels/cuda/")  # parts of an op, and CUDA bodies

OP = re.compile(r"^(?:Tensor|void|int64_t|std::vector<\w+>|[A-Z]\w*) \w+\(Tape& tape\b", re.MULTILINE)
PARTS = {
    "its equation": re.compile(r"^ *///(?:   .*\S| \S{1,8}) [=←] \S", re.MULTILINE),
    "what it throws": re.compile(r"//.*\bThrows\b"),
    "a source (arXiv:NUMBER or Source:)": re.compile(r"//.*(?:\barXiv:\d{4}\.\d{4,5}\b|\bSource: \S)"),
}
NO_PAGE = re.compile(r"\b[Ss]pecification\b|\b[Aa]rchitecture page\b|\b(?:BC|AV)\b")


def main(root):
    faults, ops = [], 0
    for path in sorted((root / "kernels").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
            continue
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if NO_PAGE.search(line):
                faults.append(f"{name}:{number}: cites a page that the project does not have: {line.strip()}")
        if path.suffix != ".h" or path.name.endswith("_cuda.h") or path.name in ENGINE or name.startswith(OTHERS) or not OP.search(text):
            continue
        ops += 1
        faults += [f"{name}: does not state {part}" for part, pattern in PARTS.items() if not pattern.search(text)]
    if ops == 0:
        faults.append("no op header found below kernels/")
    print("\n".join(faults) if faults else f"{ops} op headers state equation, errors and source")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
