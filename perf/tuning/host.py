"""The host platform: two ranks, a process and a core each, by every algorithm, staged (ordinary memory) and between windows
(heap), from 8 bytes to 64 MiB, and through staging with several PKCOMM_CHUNK. Of several repetitions the best counts,
since disturbances only add time."""

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

from tuning import costs, review
from tuning.costs import ROOTED, SWITCHED, SYMMETRIC, TWO_SHOT, WITHOUT_COMMON_SIZE
from tuning.lines import fit, rate, time_at

RANKS = 2
# Calls back to back, each waited for, are what a user of the symmetric ones sees. Where data flow one way the sender would
# run ahead and hide the latency, so the ranks are aligned before each call, outside of the time.
BLOCKING = {**dict.fromkeys(SYMMETRIC + ["barrier", "sendrecv", "all_to_all_v"], "2"), **dict.fromkeys(ROOTED, "3")}
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


class Bench:
    """Runs pkcomm-perf and keeps the best time, us, of each (collective, algorithm, path, chunk) and size."""

    def __init__(self, perf, folder):
        self.perf = perf
        self.folder = folder
        self.best = collections.defaultdict(dict)
        self.windows_only = folder / "windows.json"
        self.windows_only.write_text(json.dumps(costs.windows_only("host", RANKS)))
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
        environment.update({"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0",
                            "PKCOMM_ALGORITHM": algorithm})
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
            bench.run(TWO_SHOT, "two_shot_ll", "staged", band)
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
    return costs.wire_bytes(collective, algorithm, path, size, RANKS)


def pair_bytes(collective, size):
    """What passes one slot of staging, for the algorithms that go through rounds."""
    return size if collective == "broadcast" else (size + 1) // 2


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
            times.update(large)
        curve.update({"threads": 1, "source": source})
        if collective in WITHOUT_COMMON_SIZE:
            least, greatest = min(times), max(times)
            slope = 1000 * (times[greatest] - times[least]) / greatest if greatest else 0.0
            curve["lines"] = [{"from_bytes": 0, "ctas": 1, "alpha_ns": round(1000 * times[least]),
                               "bytes_per_us": rate(slope)}]
        else:
            curve["lines"] = fit(times, lambda size: wire_bytes(collective, algorithm, path, size))
        curves.append(curve)
    return curves


def predict(curve, size):
    name = (curve["collectives"][0], curve["algorithms"][0], curve["paths"][0])
    rounds = (pair_bytes(name[0], size) - 1) // curve["chunk_bytes"] if curve.get("chunk_bytes") else 0
    return time_at(curve["lines"], size, wire_bytes(*name, size)) + curve.get("round_ns", 0) * rounds


def check(curves, best):
    """Fails where a curve falls with the size; reports by how much the table's choices miss the best that was measured."""
    by_name = {(c["collectives"][0], c["algorithms"][0], c["paths"][0]): c for c in curves}
    for name, curve in by_name.items():
        if name[0] not in WITHOUT_COMMON_SIZE:
            review.require_growth(" ".join(name), lambda size, curve=curve: predict(curve, size))
    for path in ("staged", "zero_copy"):
        misses = []
        for collective in SYMMETRIC + ROOTED:
            offers = {name: curve for name, curve in by_name.items() if name[0] == collective
                      and name[1] != "multimem_emulated" and (name[2] == path or "_ll" in name[1])}
            for size in sorted(best[collective, "direct_ldst", "zero_copy", 0]):
                measured = {}
                for name, curve in offers.items():
                    # Chunks begin to matter above SMALL.
                    times = best[name + (curve.get("chunk_bytes", 0) if size > SMALL[1] else 0,)]
                    if size in times:
                        measured[name] = times[size]
                chosen = min(measured, key=lambda name: predict(offers[name], size))
                quickest = min(measured, key=measured.get)
                misses.append((measured[chosen] / measured[quickest], collective, size, chosen[1], quickest[1]))
        review.print_choices(path, misses)


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return ""


def make_table(perf, rounds, builtin):
    """The built-in one is for every host, else it is for this machine."""
    cpu = cpu_name()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(perf, pathlib.Path(folder))
        measure(bench, rounds)
    curves = make_curves(bench.best, f"measured by perf/tune.py, 2 ranks, {cpu}, {datetime.date.today()}")
    check(curves, bench.best)
    machine = {"platform": "host"} if builtin else {"platform": "host", "cpu": cpu}
    return {"schema": 1, "name": "host" if builtin else "measured", "machine": machine, "cta_price_ppm": 0,
            "curves": curves}
