#!/usr/bin/env python3
"""No function of the product is longer than 100 lines. Found by its indentation, which clang-format sees to."""
import pathlib
import re
import sys

LIMIT = 100
ROOMS = ("app", "ui", "models", "kernels", "analysis")
NO_FUNCTION = re.compile(r"\s*(namespace|struct|class|enum|union|extern)\b")


def functions(lines):
    """(first line, lines) of what begins at an indentation of 0 or 2 and ends with a brace there."""
    for indentation in (0, 2):
        for end, line in enumerate(lines):
            if line != " " * indentation + "}":
                continue
            first = end - 1
            while first > 0 and (not lines[first].strip() or lines[first].startswith("#") or
                                 len(lines[first]) - len(lines[first].lstrip()) > indentation):
                first -= 1
            if not NO_FUNCTION.match(lines[first]):
                yield first + 1, end - first + 1


def main(root):
    faults, count = [], 0
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            for first, length in functions(path.read_text(encoding="utf-8").splitlines()):
                count += 1
                if length > LIMIT:
                    faults.append(f"{path.relative_to(root).as_posix()}:{first}: a function of {length} lines, {LIMIT} at most")
    if count < 1000:
        faults.append(f"only {count} functions found")
    print("\n".join(faults) if faults else f"{count} functions, none over {LIMIT} lines")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
