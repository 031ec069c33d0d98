#!/usr/bin/env python3
"""Measures the cost model's constants for the host platform and writes them as a tuning table.

Two ranks, a process and a core each, run every collective by every algorithm (PKCOMM_ALGORITHM), staged (ordinary memory)
and between windows (heap), from 8 bytes to 64 MiB, and through staging with several PKCOMM_CHUNK. pkcomm-perf does the
timing; of several repetitions the best counts, since disturbances only add time. The times become a few straight lines a
curve, src/dispatch/tuning.hpp, that grow with the size throughout. The table is for PKCOMM_TUNING, or for the library
itself (--builtin). How well it chooses among what was measured is reported on standard error.

Usage: perf/tune.py [--perf build/release/bin/pkcomm-perf] [--rounds 2] [--output FILE | --builtin]
On a machine that does other work too: chrt -f 1 perf/tune.py ...
"""

import argparse
import collections
import datetime
import json
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILTIN = ROOT / "src" / "dispatch" / "tables" / "host.json.inc"

# Calls back to back, each waited for, are what a user of the symmetric ones sees. Where data flow one way the sender would
# run ahead and hide the latency, so the ranks are aligned before each call, outside of the time.
SYMMETRIC = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
ROOTED = ["reduce", "broadcast", "gather", "scatter"]
BLOCKING = {**dict.fromkeys(SYMMETRIC + ["barrier", "sendrecv", "all_to_all_v"], "2"), **dict.fromkeys(ROOTED, "3")}
SIZED_BY_BLOCKS = {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}
SWITCHED = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
PERF_NAMES = {"sendrecv": "send_recv"}  # pkcomm-perf's: the table's

CHUNKS = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10]
# Least size, greatest, factor, calls a repetition, repetitions: a millisecond or a few calls, some times over.
SMALL = (8, 16 << 10, 2, 200, 3)
MIDDLE = (32 << 10, 1 << 20, 2, 20, 3)
LARGE = (4 << 20, 64 << 20, 4, 2, 3)  # in the first round alone
LIMIT_S = 15  # for one run of pkcomm-perf, which takes a second

# Not measurable with two cores: what a further rank costs each call, mostly one more flag to write and to wait for.
PER_PEER_NS = {"one_shot_ll": 200, "two_shot_ll": 300, "copy_engine": 500}
PER_PEER_NS_ELSE = 250

MOST_LINES = 4  # of a curve; each is read when a call is priced
STEEP = 1.25  # between two lines: more is climbed in STEPS
STEPS = 4
MOST_RATE = 10 ** 9  # that a table may hold
WORTH_A_LINE = 0.03  # mean relative error that one line more must save

# Makes windows be used wherever there are any.
STAGING_IS_DEAR = {"schema": 1, "name": "windows only", "machine": {"platform": "host"}, "curves": [
    {"collectives": SYMMETRIC + ROOTED, "algorithms": ["direct_ldst", "direct_tma", "copy_engine"], "paths": ["staged"],
     "nranks": 2, "source": "to measure the other path",
     "lines": [{"from_bytes": 0, "ctas": 1, "alpha_ns": 1 << 30, "bytes_per_us": 1}]}]}


class Bench:
    """Runs pkcomm-perf and keeps the best time, us, of each (collective, algorithm, path, chunk) and size."""

    def __init__(self, perf, folder):
        self.perf = perf
        self.folder = folder
        self.best = collections.defaultdict(dict)
        self.windows_only = folder / "windows.json"
        self.windows_only.write_text(json.dumps(STAGING_IS_DEAR))
        self.cores = sorted(os.sched_getaffinity(0))[:2]
        if len(self.cores) < 2:
            sys.exit("tune.py: needs two cores, one for each rank")

    def run(self, collectives_, algorithm, path, band, chunk=0):
        for blocking in sorted({BLOCKING[name] for name in collectives_}):
            chosen = [name for name in collectives_ if BLOCKING[name] == blocking]
            for row in self.launch(chosen, algorithm, path, band, chunk, blocking):
                name = PERF_NAMES.get(row["collective"], row["collective"])
                if row["algorithm"] not in (algorithm, "-"):
                    continue  # not legal at this size: another stood in
                times = self.best[name, algorithm, path, chunk]
                times[row["size"]] = min(times.get(row["size"], math.inf), row["out_of_place"]["time"])

    def launch(self, names, algorithm, path, band, chunk, blocking, again=True):
        least, greatest, factor, calls, repetitions = band
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            where = f"127.0.0.1:{probe.getsockname()[1]}"
        report = self.folder / "report.json"
        command = [str(self.perf), ",".join(names), "--launcher", "torchrun", "--rendezvous", where,
                   "-b", str(least), "-e", str(greatest), "-f", str(factor), "-n", str(calls), "-N", str(repetitions),
                   "-R", "2" if path == "zero_copy" else "0", "-c", "0", "-z", blocking, "-a", "3"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PKCOMM_")}
        environment |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": "0", "PKCOMM_ALGORITHM": algorithm}
        if path == "zero_copy":
            environment["PKCOMM_TUNING"] = str(self.windows_only)
        if chunk:
            environment["PKCOMM_CHUNK"] = str(chunk)

        # The copy engine's worker is a thread beside the rank, on whatever core is free.
        cores = set(self.cores) if algorithm == "copy_engine" else None

        def start(rank):
            return subprocess.Popen([*command, "-J", str(report) if rank == 0 else os.devnull],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                    env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                                    preexec_fn=lambda: os.sched_setaffinity(0, cores or {self.cores[rank]}))

        ranks = [start(0), start(1)]
        try:
            errors = "".join(rank.communicate(timeout=LIMIT_S)[1] for rank in ranks)
        except subprocess.TimeoutExpired:
            errors = f"not done within {LIMIT_S} s"
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        if any(rank.returncode for rank in ranks):
            if again:
                print(f"tune.py: {algorithm}, {path}, chunk {chunk}, once more: {errors}", file=sys.stderr)
                return self.launch(names, algorithm, path, band, chunk, blocking, again=False)
            sys.exit(f"tune.py: {' '.join(command)}, {algorithm}, {path}, chunk {chunk}: {errors}")
        return json.loads(report.read_text())["results"]


def measure(bench, rounds):
    everything = SYMMETRIC + ROOTED
    for round_ in range(rounds):
        large = [LARGE] if round_ == 0 else []
        for band in (SMALL, MIDDLE):
            bench.run(everything, "one_shot_ll", "staged", band)
            bench.run(["all_reduce", "reduce", "broadcast"], "two_shot_ll", "staged", band)
        bench.run(["barrier"], "one_shot_ll", "staged", SMALL)
        bench.run(["sendrecv", "all_to_all_v"], "pairwise", "staged", SMALL)
        bench.run(["sendrecv", "all_to_all_v"], "pairwise", "staged", MIDDLE)
        for algorithm in ("direct_ldst", "direct_tma", "copy_engine"):
            bench.run(everything, algorithm, "staged", SMALL)
            for chunk in CHUNKS:
                for band in (MIDDLE, *large):
                    bench.run(everything, algorithm, "staged", band, chunk)
            for band in (SMALL, MIDDLE, *large):
                bench.run(everything, algorithm, "zero_copy", band)
        for band in (SMALL, MIDDLE, *large):
            bench.run(SWITCHED, "multimem_emulated", "zero_copy", band)


def wire_bytes(collective, algorithm, path, size):
    """As wire_bytes() of src/collectives/descriptors.cpp, for two ranks."""
    blocks = collective in SIZED_BY_BLOCKS
    if algorithm == "one_shot_ll":
        return size if blocks else 2 * size
    if algorithm == "two_shot_ll":
        return 2 * size
    return size // 2 if blocks else size


def pair_bytes(collective, size):
    """What passes one slot of staging, for the algorithms that go through rounds."""
    return size if collective == "broadcast" else (size + 1) // 2


def grow(times):
    """Times that grow with the size: neighbours that do not are replaced by their mean."""
    pools = []
    for time in times:
        pools.append([math.log(time), 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            value, count = pools.pop()
            pools[-1][0] = (pools[-1][0] * pools[-1][1] + value * count) / (pools[-1][1] + count)
            pools[-1][1] += count
    return [math.exp(value) for value, count in pools for _ in range(count)]


def straight(points):
    """alpha and slope, neither negative, that miss the points least in relative terms; and the squared error."""
    def error(alpha, slope):
        return sum(((alpha + slope * x) / y - 1) ** 2 for x, y in points)

    s = [sum(x ** i / (y * y) for x, y in points) for i in range(3)]
    t = [sum(x ** i / y for x, y in points) for i in range(2)]
    fits = [(t[0] / s[0], 0.0)]
    if s[2] > 0:
        fits.append((0.0, t[1] / s[2]))
    determinant = s[0] * s[2] - s[1] * s[1]
    if len(points) > 1 and determinant > 0:
        fits.append(((t[0] * s[2] - t[1] * s[1]) / determinant, (s[0] * t[1] - s[1] * t[0]) / determinant))
    return min((error(a, b), a, b) for a, b in fits if a >= 0 and b >= 0)


def segments(points, most=MOST_LINES):
    """The points cut into at most `most` runs with a line each: (alpha, slope, first, past the last)."""
    n = len(points)
    best = [[(0.0, [])] + [(math.inf, [])] * n]  # best[k][i]: k lines for the first i points
    for k in range(1, most + 1):
        row = [(math.inf, [])] * (n + 1)
        for i in range(1, n + 1):
            for j in range(i):
                before, lines = best[k - 1][j]
                if before == math.inf or (i - j < 2 and n > 1):
                    continue
                missed, alpha, slope = straight(points[j:i])
                if before + missed < row[i][0]:
                    row[i] = (before + missed, lines + [(alpha, slope, j, i)])
        best.append(row)

    def cost(k):
        return math.sqrt(best[k][n][0] / n) + WORTH_A_LINE * k

    return best[min(range(1, most + 1), key=cost)][n][1]


def fit(times, wire):
    """Lines of a curve for {size: us}. Two lines meet between the last size of one and the first of the next, where they
    are closest; should the next still lie below, it is lifted. Where it lies far above (the caches are full, and no line
    with an alpha of 0 or more is as steep) steps lead up to it."""
    sizes = sorted(times)
    points = [(wire(size), time * 1000) for size, time in zip(sizes, grow([times[size] for size in sizes]))]
    lines = []  # from, alpha, slope
    for alpha, slope, first, _ in segments(points):
        begin = 0
        if lines:
            last, then = sizes[first - 1], sizes[first]

            def before(size, line=lines[-1]):
                return line[1] + line[2] * wire(size)

            def after(size, alpha=alpha, slope=slope):
                return alpha + slope * wire(size)

            spread = [then - (then - last) // 8 * i for i in range(8)]
            begin = min(spread, key=lambda size: abs(after(size) - before(size)))
            if last >= MIDDLE[0] and after(begin) > STEEP * before(begin):
                begin = then
                for step in range(1, STEPS):
                    size = int(last * (then / last) ** (step / STEPS)) // 64 * 64
                    time = before(last) * (after(then) / before(last)) ** (step / STEPS)
                    lines.append((size, 0.0, time / wire(size)))
            alpha += max(0, before(begin) - after(begin))
        lines.append((begin, alpha, slope))
    return [{"from_bytes": begin, "ctas": 1, "alpha_ns": round(alpha), "bytes_per_us": rate(slope)}
            for begin, alpha, slope in lines]


def rate(slope):
    return max(1, min(MOST_RATE, round(1000 / slope))) if slope > 0 else MOST_RATE


def choose_chunk(best, collective, algorithm):
    """The chunk with the least time over all sizes, by ratio; its times; the time of a round."""
    by_chunk = {chunk: best[collective, algorithm, "staged", chunk] for chunk in CHUNKS}
    chunk = min(CHUNKS, key=lambda c: sum(math.log(time) for time in by_chunk[c].values()))
    times = by_chunk[chunk]

    def rounds(size, of):
        return max(0, (pair_bytes(collective, size) - 1) // of)

    more = [1000 * (by_chunk[CHUNKS[0]][size] - times[size]) / (rounds(size, CHUNKS[0]) - rounds(size, chunk))
            for size in times if rounds(size, CHUNKS[0]) > rounds(size, chunk)]
    # Never more than a third of a time: the rest of it are bytes.
    bounds = [1000 * times[size] / 3 / rounds(size, chunk) for size in times if rounds(size, chunk)]
    round_ns = round(max(0, min([statistics.median(more), *bounds]))) if more else 0
    return chunk, round_ns, {size: time - round_ns * rounds(size, chunk) / 1000 for size, time in times.items()}


def make_curves(best, source):
    curves = []
    for collective, algorithm, path, chunk in list(best):
        if chunk:
            continue
        times = dict(best[collective, algorithm, path, 0])
        curve = {"collectives": [collective], "algorithms": [algorithm], "paths": [path], "nranks": 2,
                 "per_peer_ns": PER_PEER_NS.get(algorithm, PER_PEER_NS_ELSE)}
        if (collective, algorithm, path, CHUNKS[0]) in best:
            curve["chunk_bytes"], curve["round_ns"], large = choose_chunk(best, collective, algorithm)
            times |= large
        curve |= {"threads": 1, "source": source}
        if collective in ("barrier", "send_recv", "all_to_all_v"):  # priced as if they moved nothing
            least, greatest = min(times), max(times)
            slope = 1000 * (times[greatest] - times[least]) / greatest if greatest else 0.0
            curve["lines"] = [{"from_bytes": 0, "ctas": 1, "alpha_ns": round(1000 * times[least]),
                               "bytes_per_us": rate(slope)}]
        else:
            curve["lines"] = fit(times, lambda size: wire_bytes(collective, algorithm, path, size))
        curves.append(curve)
    return curves


def predict(curve, size):
    line = [line for line in curve["lines"] if line["from_bytes"] <= size][-1]
    name = (curve["collectives"][0], curve["algorithms"][0], curve["paths"][0])
    rounds = (pair_bytes(name[0], size) - 1) // curve["chunk_bytes"] if curve.get("chunk_bytes") else 0
    return line["alpha_ns"] + 1000 * wire_bytes(*name, size) / line["bytes_per_us"] + curve.get("round_ns", 0) * rounds


def check(curves, best):
    """Fails where a curve falls with the size; reports by how much the table's choices miss the best that was measured."""
    by_name = {(c["collectives"][0], c["algorithms"][0], c["paths"][0]): c for c in curves}
    for name, curve in by_name.items():
        if name[0] in ("barrier", "send_recv", "all_to_all_v"):
            continue
        previous = 0
        for step in range(24 * 8):
            size = int(8 * 2 ** (step / 8)) // 8 * 8
            now = predict(curve, size)
            if now < previous * 0.999 - 1:
                sys.exit(f"tune.py: the curve of {' '.join(name)} falls at {size} bytes: {previous:.0f} to {now:.0f} ns")
            previous = now
    for path in ("staged", "zero_copy"):
        misses = []
        for collective in SYMMETRIC + ROOTED:
            offers = {name: curve for name, curve in by_name.items() if name[0] == collective
                      and name[1] != "multimem_emulated" and (name[2] == path or "_ll" in name[1])}
            for size in sorted(best[collective, "direct_ldst", "zero_copy", 0]):
                measured = {}
                for name, curve in offers.items():
                    # Chunks begin to matter above SMALL.
                    times = best[*name, curve.get("chunk_bytes", 0) if size > SMALL[1] else 0]
                    if size in times:
                        measured[name] = times[size]
                chosen = min(measured, key=lambda name: predict(offers[name], size))
                quickest = min(measured, key=measured.get)
                misses.append((measured[chosen] / measured[quickest], collective, size, chosen[1], quickest[1]))
        misses.sort(reverse=True)
        ratios = [miss[0] for miss in misses]
        print(f"{path}: choices take {statistics.mean(ratios):.3f} of the best on average; the worst:", file=sys.stderr)
        for ratio, collective, size, chosen, quickest in misses[:6]:
            print(f"  {ratio:5.2f}  {collective} {size}: {chosen}, quickest {quickest}", file=sys.stderr)


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return ""


def write(table):
    """JSON with a line for each curve and one for its lines."""
    head = {key: value for key, value in table.items() if key != "curves"}
    curves = []
    for curve in table["curves"]:
        lines = ",\n             ".join(json.dumps(line) for line in curve["lines"])
        names = {key: value for key, value in curve.items() if key not in ("source", "lines")}
        curves.append(f'  {json.dumps(names)[:-1]},\n   "source": {json.dumps(curve["source"])},\n   "lines": [{lines}]}}')
    return json.dumps(head)[:-1] + ',\n "curves": [\n' + ",\n".join(curves) + "]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--perf", type=pathlib.Path, default=ROOT / "build" / "release" / "bin" / "pkcomm-perf")
    parser.add_argument("--rounds", type=int, default=2, help="of the whole; the best counts")
    parser.add_argument("--output", type=pathlib.Path, help="a file for PKCOMM_TUNING; else standard output")
    parser.add_argument("--builtin", action="store_true", help=f"write {BUILTIN.relative_to(ROOT)}")
    arguments = parser.parse_args()
    cpu = cpu_name()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.perf, pathlib.Path(folder))
        measure(bench, arguments.rounds)
    source = f"measured by perf/tune.py, 2 ranks, {cpu}, {datetime.date.today()}"
    curves = make_curves(bench.best, source)
    check(curves, bench.best)
    machine = {"platform": "host"} if arguments.builtin else {"platform": "host", "cpu": cpu}
    text = write({"schema": 1, "name": "host" if arguments.builtin else "measured", "machine": machine,
                  "cta_price_ppm": 0, "curves": curves})
    if arguments.builtin:
        BUILTIN.write_text(f'R"json({text})json"\n')
    elif arguments.output:
        arguments.output.write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
