"""Reads, merges and writes tuning tables (docs/dispatcher.md)."""

import collections
import itertools
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILTIN = ROOT / "src" / "dispatch" / "tables"
BEGIN, END = 'R"json(', ')json"\n'  # round a built-in table: a raw string literal


def read(path):
    text = path.read_text()
    return json.loads(text[len(BEGIN):-len(END)] if text.startswith(BEGIN) else text)


def write(path, table):
    text = dump(table)
    path.write_text(BEGIN + text + END if path.name.endswith(".inc") else text + "\n")


def dump(table):
    """JSON with a line for each curve and one for its lines."""
    head = {key: value for key, value in table.items() if key != "curves"}
    curves = []
    for curve in table["curves"]:
        lines = ",\n             ".join(json.dumps(line) for line in curve["lines"])
        names = {key: value for key, value in curve.items() if key not in ("source", "lines")}
        curves.append(f'  {json.dumps(names)[:-1]},\n   "source": {json.dumps(curve["source"])},\n'
                      f'   "lines": [{lines}]}}')
    return json.dumps(head)[:-1] + ',\n "curves": [\n' + ",\n".join(curves) + "]}"


def builtin_for(gpu, ranks):
    """The file with the built-in table for so many GPUs of this kind, or None."""
    for path in sorted(BUILTIN.glob("*.json.inc")):
        table = read(path)
        if table["machine"].get("gpu") == gpu and all(nranks(curve) == ranks for curve in table["curves"]):
            return path
    return None


def nranks(curve):
    return curve.get("nranks", 2)


def keys(curve):
    """(collective, algorithm, path, ranks): what one curve may replace of another."""
    return itertools.product(curve["collectives"], curve["algorithms"], curve["paths"], [nranks(curve)])


def merge(table, curves):
    """`table` with `curves` in place of what it has for the same; all else is kept."""
    replaced = {key for curve in curves for key in keys(curve)}
    kept = [rest for curve in table["curves"] for rest in without(curve, replaced)]
    return {**table, "curves": curves + kept}


def without(curve, replaced):
    """What is left of a curve: several where that is not every collective by every algorithm on every path."""
    left = collections.defaultdict(list)  # (collectives, paths): algorithms
    for algorithm in curve["algorithms"]:
        by_rest = collections.defaultdict(list)  # collectives: paths
        for path in curve["paths"]:
            rest = tuple(name for name in curve["collectives"]
                         if (name, algorithm, path, nranks(curve)) not in replaced)
            if rest:
                by_rest[rest].append(path)
        for rest, paths in by_rest.items():
            left[rest, tuple(paths)].append(algorithm)
    return [{**curve, "collectives": list(rest), "algorithms": algorithms, "paths": list(paths)}
            for (rest, paths), algorithms in left.items()]
