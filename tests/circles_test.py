#!/usr/bin/env python3
"""Fails when folders of the product include each other in a circle. Usage: circles_test.py SOURCE_DIR | --self-test"""
import pathlib
import re
import sys
import tempfile

ROOMS = ("kernels", "models", "analysis", "ui", "app")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def folders_included(root):
    """Folder -> folder it includes -> the first include that says so."""
    graph = {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            here = path.parent.relative_to(root).as_posix()
            edges = graph.setdefault(here, {})
            for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
                there = pathlib.PurePosixPath(header).parent.as_posix()
                if there.split("/")[0] in ROOMS and there != here:
                    edges.setdefault(there, f"{path.relative_to(root)} includes {header}")
    return graph


def reached(graph, start):
    seen, todo = set(), [start]
    while todo:
        for there in graph.get(todo.pop(), {}):
            if there not in seen:
                seen.add(there)
                todo.append(there)
    return seen


def circles(graph):
    """Sets of two or more folders that reach each other."""
    reach = {folder: reached(graph, folder) for folder in graph}
    found = {frozenset(b for b in graph if b == a or (b in reach[a] and a in reach[b])) for a in graph}
    return sorted((sorted(circle) for circle in found if len(circle) > 1))


def problems(root):
    graph = folders_included(root)
    lines = []
    for circle in circles(graph):
        lines.append("a circle of includes: " + ", ".join(circle))
        lines += [f"  {a} -> {b}: {why}" for a in circle for b, why in sorted(graph[a].items()) if b in circle]
    if not graph:
        lines.append(f"{root} holds no sources")
    return lines


def self_test():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)

        def write(path, *headers):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("".join(f'#include "{header}"\n' for header in headers))

        assert problems(root), "an empty tree passes"
        write("models/model.h")
        write("models/layers/a.h", "models/model.h", "models/layers/b.h")
        write("ui/page.h", "models/layers/a.h")
        assert not problems(root)
        write("models/model.h", "models/training/t.h")
        write("models/training/t.cu", "models/layers/a.h")
        assert problems(root)[0] == "a circle of includes: models, models/layers, models/training"


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = problems(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or "no circles of folders")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
