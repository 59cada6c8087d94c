#!/usr/bin/env python3
"""Every test that docs/window.md names is there: promises_test.py SOURCE."""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])


def text_of(program):
    """Of "live_test", or "analysis/figure_test"; of any folder of tests without one."""
    folder, _, name = program.rpartition("/")
    files = (p for p in (source / "tests").rglob(f"{name}.*") if p.suffix in (".cpp", ".py") and folder in ("", p.parent.name))
    return "\n".join(p.read_text() for p in files)


missing, found = [], 0
for line in (source / "docs/window.md").read_text().splitlines():
    program = ""
    for words in re.split(r"[;,|] ?", re.sub(r"\([^)]*\)", "", line)):  # "program::case, another case of it; program"
        if named := re.fullmatch(r"(?:\w+: )?((?:analysis/)?\w+_(?:test|bench))(?:::(\w+))?\.?", words.split(". ")[0].strip()):
            program, case = named.groups()
        elif program and re.fullmatch(r"\w+", words.strip()):
            case = words.strip()
        else:
            continue
        found += 1
        if not (text := text_of(program)) or (case and not re.search(rf"\b{case}\(", text)):
            missing.append(f"{program}::{case}")
print(f"{found} tests named, {len(missing)} not there: {', '.join(missing)}")
sys.exit(bool(missing) or found < 100)
