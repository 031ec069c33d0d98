"""Sums gcov's line counts: a row for each folder of src/, and a file that lists the lines never executed.

Usage: coverage_report.py BUILD_DIRECTORY PROJECT_ROOT OUTPUT
"""

import collections
import json
import pathlib
import subprocess
import sys


def read_counts(build, root):
    """{file under src/: {line: executions}}, summed over all objects that contain the line."""
    counts = collections.defaultdict(collections.Counter)
    objects = [path.resolve() for path in sorted(build.rglob("*.gcda"))]
    if not objects:
        sys.exit(f"no .gcda file under {build}: was anything run?")
    command = ["gcov", "--json-format", "--stdout", *map(str, objects)]
    for text in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        if not text.startswith("{"):
            continue
        for entry in json.loads(text)["files"]:
            path = pathlib.Path(entry["file"])
            path = (path if path.is_absolute() else build / path).resolve()
            if path.is_relative_to(root / "src"):
                for line in entry["lines"]:
                    counts[path.relative_to(root).as_posix()][line["line_number"]] += line["count"]
    return counts


def main():
    build, root, output = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    counts = read_counts(build, root)
    folders = collections.defaultdict(lambda: [0, 0])
    with output.open("w", encoding="utf-8") as listing:
        for name, lines in sorted(counts.items()):
            missed = sorted(line for line, count in lines.items() if count == 0)
            folder = "/".join(name.split("/")[:2])
            for key in (folder, "src"):
                folders[key][0] += len(lines) - len(missed)
                folders[key][1] += len(lines)
            listing.write(f"{name}: {len(lines) - len(missed)}/{len(lines)}; missed {missed}\n")
    for folder, (executed, lines) in sorted(folders.items()):
        print(f"{folder:24} {executed:6} of {lines:6} lines  {100 * executed / lines:5.1f} %")


if __name__ == "__main__":
    main()
