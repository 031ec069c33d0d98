"""The CUDA platform: a process a GPU, every algorithm that runs there, with one number of CTAs after another, calls
back to back in a graph. A round has sizes four times apart; the next one, while there is time, those between. What is
measured twice counts by the better."""

import collections
import csv
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from peers import SWITCHES
from tuning import costs, review, tables
from tuning.costs import ROOTED, SYMMETRIC, TWO_SHOT, WITHOUT_COMMON_SIZE
from tuning.lines import fit, time_at

CTAS = [1, 2, 4, 8, 16]  # 16: the default of PKCOMM_MAX_CTAS on GPUs
EVERYTHING = SYMMETRIC + ROOTED
ELEMENT = 4  # bytes of pkcomm-perf's default type
LL_BLOCK = 512 << 10  # where packets hold less another algorithm stands in, and its row is left out
TWO_SHOT_MOST = 4 << 20
DIRECT_LEAST, DIRECT_MOST = 16 << 10, 64 << 20
DIRECT_MOST_PER_CTA = 16 << 20  # few CTAs take long over large sizes, and nobody lets them

GRAPH_CALLS = 50
REPEATS = 3
RUN_LIMIT_S = 30  # one run takes 2 to 6 s
RUN_LEAST_S = 8  # left of the budget for a run to begin

# Where the built-in table has no such curve: what a further rank costs, and the threads of a CTA.
PER_PEER_NS = 150
THREADS = 512
PRICE_PPM = 3300  # of a CTA, where the built-in table leaves it to another's

FEWEST_SIZES = 3  # for the lines of one number of CTAs

Run = collections.namedtuple("Run", "collectives algorithm path ctas least greatest factor")


def plan_round(ranks, ctas, shift):
    """The runs of a round, in the order of what would be missed most; sizes begin at `shift` times the least."""
    least = 4 * ELEMENT
    while least < ELEMENT * ranks:
        least *= 4  # with four times as much each, all algorithms have sizes in common
    counts = sorted(ctas, reverse=True)
    runs = [Run(EVERYTHING, "one_shot_ll", "staged", n, least * shift, LL_BLOCK * ranks, 4) for n in counts]
    runs.append(Run(["barrier"], "one_shot_ll", "staged", 1, least, least, 2))
    for path in ("staged", "zero_copy"):
        for n in counts:
            most = min(DIRECT_MOST, DIRECT_MOST_PER_CTA * n)
            runs.append(Run(EVERYTHING, "direct_ldst", path, n, DIRECT_LEAST * shift, most, 4))
    runs += [Run(TWO_SHOT, "two_shot_ll", "staged", n, 4 << 10, TWO_SHOT_MOST, 2) for n in counts]
    return runs


class Bench:
    """Runs pkcomm-perf until `deadline` (time.monotonic) and keeps what every run gave."""

    def __init__(self, perf, ranks, folder, deadline):
        self.perf = perf
        self.ranks = ranks
        self.folder = folder
        self.deadline = deadline
        self.gpu = ""
        self.records = []
        self.windows_only = folder / "windows.json"
        self.windows_only.write_text(json.dumps(costs.windows_only("cuda", ranks)))

    def run(self, run):
        """False once there is no time left. A run that fails is kept with the rows that it made, and the reason."""
        limit = min(RUN_LIMIT_S, self.deadline - time.monotonic())
        if limit < RUN_LEAST_S:
            return False
        rows, report, errors = (self.folder / name for name in ("rows.csv", "report.json", "errors"))
        for file in (rows, report):
            if file.exists():
                file.unlink()
        begin = time.monotonic()
        with errors.open("w") as stream:
            try:
                status = subprocess.run(self.command(run, rows, report), env=self.environment(run), timeout=limit,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream).returncode
                why = f"exit code {status}" if status else ""
            except subprocess.TimeoutExpired:
                why = f"not done within {limit:.0f} s"
        record = {**run._asdict(), "seconds": round(time.monotonic() - begin, 2), "rows": read_rows(rows)}
        if why:
            record["error"] = f"{why}: {errors.read_text(errors='replace').strip()[-500:]}"
            print(f"tune.py: {run.algorithm}, {run.path}, {run.ctas} CTAs: {record['error']}", file=sys.stderr)
        elif not self.gpu:
            self.gpu = json.loads(report.read_text())["devices"][0]["device_info"]
        self.records.append(record)
        return True

    def command(self, run, rows, report):
        return [str(self.perf), ",".join(run.collectives), "--platform", "cuda", "-g", str(self.ranks),
                "-b", str(run.least), "-e", str(run.greatest), "-f", str(run.factor), "--graph",
                "--graph-calls", str(GRAPH_CALLS), "--repeats", str(REPEATS), "-c", "0",
                "-R", "2" if run.path == "zero_copy" else "0", "--algorithm", run.algorithm,
                "--csv", str(rows), "--json", str(report)]

    def environment(self, run):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PKCOMM_")}
        environment.update(SWITCHES)
        environment.update({"PKCOMM_MULTICAST": "off",
                            "PKCOMM_MIN_CTAS": str(run.ctas), "PKCOMM_MAX_CTAS": str(run.ctas)})
        if run.path == "zero_copy":
            environment["PKCOMM_TUNING"] = str(self.windows_only)
        return environment


def read_rows(file):
    """Out-of-place rows of pkcomm-perf's CSV, which is whole as far as it goes when a run has failed."""
    if not file.exists():
        return []
    rows = []
    with file.open(newline="") as stream:
        for row in csv.DictReader(stream):
            if None in row.values() or row["placement"] != "out_of_place":
                continue
            us = float(row["time_us"])
            if math.isfinite(us) and us > 0:
                rows.append({"collective": row["collective"], "size": int(row["size_bytes"]), "us": us,
                             "algorithm": row["algorithm"], "ctas": int(row["ctas"])})
    return rows


def measure(perf, ranks, ctas, budget_s):
    """All runs, as a value that goes into a file and from which curves can be made again."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(perf, ranks, pathlib.Path(folder), begin + budget_s)
        runs = [run for shift in (1, 2) for run in plan_round(ranks, ctas, shift)]
        for done, run in enumerate(runs):
            if not bench.run(run):
                print(f"tune.py: {done} of {len(runs)} runs in {budget_s} s", file=sys.stderr)
                break
    return {"schema": 1, "platform": "cuda", "gpu": bench.gpu, "ranks": ranks, "ctas": sorted(ctas),
            "date": str(datetime.date.today()), "seconds": round(time.monotonic() - begin, 1),
            "graph_calls": GRAPH_CALLS, "repeats": REPEATS, "runs": bench.records}


def best_times(raw):
    """{(collective, algorithm, path): {CTAs: {size: us}}}"""
    best = collections.defaultdict(lambda: collections.defaultdict(dict))
    for run in raw["runs"]:
        for row in run["rows"]:
            if row["algorithm"] != run["algorithm"] or row["ctas"] != run["ctas"]:
                continue  # not legal at this size: another stood in
            times = best[row["collective"], run["algorithm"], run["path"]][run["ctas"]]
            times[row["size"]] = min(times.get(row["size"], math.inf), row["us"])
    return {key: dict(by_ctas) for key, by_ctas in best.items()}


def make_curves(best, raw, table, source):
    """A curve for each that was measured with every number of CTAs; and the names of those that were not."""
    wanted = {(name, run.algorithm, run.path) for run in plan_round(raw["ranks"], raw["ctas"], 1)
              for name in run.collectives}
    earlier = {key[:3]: curve for curve in table["curves"] for key in tables.keys(curve)}
    curves, incomplete = [], []
    for key in sorted(wanted, key=lambda key: (key[1], key[2], key[0])):
        collective, algorithm, path = key
        moves = collective not in WITHOUT_COMMON_SIZE
        counts = raw["ctas"] if moves else [1]
        measured = best.get(key, {})
        if any(len(measured.get(n, ())) < (FEWEST_SIZES if moves else 1) for n in counts):
            incomplete.append(" ".join(key))
            continue
        old = earlier.get(key, {})
        curve = {"collectives": [collective], "algorithms": [algorithm], "paths": [path], "nranks": raw["ranks"],
                 "per_peer_ns": old.get("per_peer_ns", PER_PEER_NS), "threads": old.get("threads", THREADS)}
        if "chunk_bytes" in old:
            curve["chunk_bytes"] = old["chunk_bytes"]  # in force while it was measured
        # No round_ns: at a given chunk rounds grow with the bytes, so they are in the rate.
        curve["source"] = source
        curve["lines"] = [line for n in counts for line in fit(measured[n], wire(key, raw["ranks"]), n)]
        curves.append(curve)
    return curves, incomplete


def wire(key, ranks):
    return lambda size: costs.wire_bytes(*key, size, ranks)


def by_ctas(curve):
    lines = collections.defaultdict(list)
    for line in curve["lines"]:
        lines[line["ctas"]].append(line)
    return lines


def check(curves, best, ranks, price):
    """Chooses as the dispatcher does among algorithms and CTAs, each of which adds its price; what was measured is
    compared with it added, too."""
    by_name = {next((c, a, p) for c, a, p, _ in tables.keys(curve)): curve for curve in curves}
    for name, curve in by_name.items():
        for n, lines in by_ctas(curve).items():
            review.require_growth(f"{' '.join(name)}, {n} CTAs",
                                  lambda size, lines=lines: time_at(lines, size, wire(name, ranks)(size)))
    for path in ("staged", "zero_copy"):
        misses = []
        for collective in EVERYTHING:
            predicted, measured = collections.defaultdict(dict), collections.defaultdict(dict)
            for name, curve in by_name.items():
                if name[0] != collective or name[2] not in (path, "staged"):
                    continue
                for n, lines in by_ctas(curve).items():
                    for size, us in best[name][n].items():
                        offer = f"{name[1]} {name[2]} {n}"
                        predicted[size][offer] = time_at(lines, size, wire(name, ranks)(size)) * (1 + n * price)
                        measured[size][offer] = us * (1 + n * price)
            for size in measured:
                chosen = min(predicted[size], key=predicted[size].get)
                quickest = min(measured[size], key=measured[size].get)
                misses.append((measured[size][chosen] / measured[size][quickest], collective, size, chosen, quickest))
        review.print_choices(path, misses)


def make_table(raw):
    """The built-in table for these GPUs with what was measured laid over it; what was left out; the table's file."""
    file = tables.builtin_for(raw["gpu"], raw["ranks"])
    table = tables.read(file) if file else {
        "schema": 1, "name": "measured", "machine": {"platform": "cuda", "gpu": raw["gpu"]}, "curves": []}
    best = best_times(raw)
    source = (f"measured by perf/tune.py, {raw['ranks']} ranks, {raw['gpu']}, {raw['date']}, "
              f"graph of {raw['graph_calls']} calls")
    curves, incomplete = make_curves(best, raw, table, source)
    check(curves, best, raw["ranks"], table.get("cta_price_ppm", PRICE_PPM) / 1e6)
    return tables.merge(table, curves), incomplete, file


def dump(raw):
    """JSON with a line for each run."""
    head = {key: value for key, value in raw.items() if key != "runs"}
    return json.dumps(head)[:-1] + ', "runs": [\n' + ",\n".join(json.dumps(run) for run in raw["runs"]) + "]}\n"
