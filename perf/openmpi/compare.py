#!/usr/bin/env python3
"""pkcomm beside OpenMPI on this machine, 2 ranks as processes: interleaved rounds, best of each.

Builds the two loops against build/release, runs them in turn for a number of rounds and prints a table: for each
collective and size OpenMPI with its default single-copy path (process_vm_readv), OpenMPI with copy-through shared memory,
pkcomm with malloc'ed buffers and with heap buffers, and the ratios that perf/claims.md speaks of. --check exits with 1
where a target is missed. Needs Debian's openmpi-bin and libopenmpi-dev.

Usage: perf/openmpi/compare.py [--rounds 5] [--check]
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "perf" / "openmpi"
BUILD = ROOT / "build" / "release"
OUT = BUILD / "perf-openmpi"

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "--mca", "btl", "self,vader"]
COPY_THROUGH = ["--mca", "btl_vader_single_copy_mechanism", "none"]


def build():
    OUT.mkdir(parents=True, exist_ok=True)
    common = ["-O2", "-std=c11", "-D_GNU_SOURCE", "-I", str(HERE)]
    subprocess.run(["mpicc", *common, str(HERE / "mpi_loop.c"), "-o", str(OUT / "mpi_loop")], check=True)
    subprocess.run(["cc", *common, "-I", str(ROOT / "include"), str(HERE / "pkcomm_loop.c"), "-o", str(OUT / "pkcomm_loop"),
                    "-L", str(BUILD / "lib"), "-lpkcomm", f"-Wl,-rpath,{BUILD / 'lib'}"], check=True)


def run(command, best):
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600,
                            env={**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1"}).stdout
    for line in output.splitlines():
        collective, label, size, microseconds = line.split()
        key = (collective, int(size))
        best[key][label] = min(best[key].get(label, float("inf")), float(microseconds))


def report(best, check):
    missed = []
    print(f"{'collective':<11}{'bytes':>10}{'MPI':>10}{'MPI copy':>10}{'malloc':>10}{'heap':>10}"
          f"{'malloc/copy':>13}{'malloc/MPI':>12}{'heap/MPI':>10}   (us, best)")
    for (collective, size), times in best.items():
        single, through = times["single-copy"], times["copy-through"]
        malloc, heap = times["malloc"], times["heap"]
        if size < 16 << 10:
            targets = [("malloc within 2x of MPI", malloc <= 2 * single), ("heap within 2x of MPI", heap <= 2 * single)]
        else:
            targets = [("heap level with MPI", heap <= single), ("malloc level with copy-through", malloc <= through)]
        misses = [name for name, met in targets if not met]
        missed += [f"{collective} {size}: {name}" for name in misses]
        print(f"{collective:<11}{size:>10}{single:>10.2f}{through:>10.2f}{malloc:>10.2f}{heap:>10.2f}"
              f"{malloc / through:>13.2f}{malloc / single:>12.2f}{heap / single:>10.2f}   {'; not ' if misses else ''}"
              f"{'; not '.join(misses)}")
    print(f"{len(missed)} targets missed")
    return 1 if check and missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit with 1 where a target is missed")
    arguments = parser.parse_args()
    build()
    best = collections.defaultdict(dict)
    for _ in range(arguments.rounds):
        run([*MPIRUN, str(OUT / "mpi_loop"), "single-copy"], best)
        run([str(OUT / "pkcomm_loop"), "malloc"], best)
        run([*MPIRUN, *COPY_THROUGH, str(OUT / "mpi_loop"), "copy-through"], best)
        run([str(OUT / "pkcomm_loop"), "heap"], best)
    return report(best, arguments.check)


if __name__ == "__main__":
    sys.exit(main())
