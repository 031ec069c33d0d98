#!/usr/bin/env python3
"""Measures the cost model's constants on the machine at hand and writes them as a tuning table (docs/dispatcher.md).

pkcomm-perf does the timing. The times become a few straight lines a curve, src/dispatch/tuning.hpp, that grow with
the size throughout. The table is for PKCOMM_TUNING, or for the library itself (--builtin). How well it chooses among
what was measured is reported on standard error. Needs Python 3.8 and no packages.

Usage: perf/tune.py [--perf build/release/bin/pkcomm-perf] [--rounds 2] [--output FILE | --builtin]
       perf/tune.py --platform cuda --ranks N [--perf build/bundle/bin/pkcomm-perf] [--ctas LIST] [--budget SECONDS]
                    [--output FILE | --builtin]
       perf/tune.py --platform cuda --raw FILE [--output FILE | --builtin]
On a machine that does other work too: chrt -f 1 perf/tune.py ...
"""

import argparse
import json
import pathlib
import sys

from tuning import gpu, host, tables

HOST_TABLE = tables.BUILTIN / "host.json.inc"
PERF = {"host": tables.ROOT / "build" / "release" / "bin" / "pkcomm-perf",
        "cuda": tables.ROOT / "build" / "bundle" / "bin" / "pkcomm-perf"}


def parse_arguments():
    def counts(text):
        values = sorted({int(word) for word in text.split(",")})
        if not 1 <= values[0] <= values[-1] <= 64:
            raise ValueError
        return values

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", choices=["host", "cuda"], default="host")
    parser.add_argument("--perf", type=pathlib.Path, help="pkcomm-perf; else that of build/release or build/bundle")
    parser.add_argument("--output", type=pathlib.Path, help="a file for PKCOMM_TUNING; else standard output")
    parser.add_argument("--builtin", action="store_true", help="write the library's own table for this machine")
    on_host = parser.add_argument_group("host")
    on_host.add_argument("--rounds", type=int, default=2, help="of the whole; the best counts")
    on_gpus = parser.add_argument_group("cuda")
    on_gpus.add_argument("--ranks", type=int, help="GPUs, a rank each")
    on_gpus.add_argument("--ctas", type=counts, default=gpu.CTAS, help="numbers of CTAs, separated by commas")
    on_gpus.add_argument("--budget", type=int, default=185, help="seconds, and then no more runs")
    on_gpus.add_argument("--raw", type=pathlib.Path, help="an earlier run's times, written beside its table")
    arguments = parser.parse_args()
    if arguments.output and arguments.builtin:
        parser.error("--output or --builtin, not both")
    if arguments.platform == "cuda" and not arguments.raw and (arguments.ranks or 0) < 2:
        parser.error("--platform cuda needs --ranks, 2 or more, or --raw")
    arguments.perf = arguments.perf or PERF[arguments.platform]
    if not arguments.raw and not arguments.perf.is_file():
        parser.error(f"there is no {arguments.perf}; --perf names another")
    return arguments


def tune_gpus(arguments):
    """The table, the file of the built-in one, and whether all was measured."""
    if arguments.raw:
        raw = json.loads(arguments.raw.read_text())
    else:
        raw = gpu.measure(arguments.perf, arguments.ranks, arguments.ctas, arguments.budget)
        if arguments.output:  # before anything is made of them
            arguments.output.with_suffix(".raw.json").write_text(gpu.dump(raw))
    if not raw["gpu"]:
        sys.exit("tune.py: no run succeeded")
    table, incomplete, file = gpu.make_table(raw)
    for name in incomplete:
        print(f"tune.py: {name}: not measured with every number of CTAs, left as it was", file=sys.stderr)
    if arguments.builtin and not file:
        sys.exit(f"tune.py: the library has no table for {raw['ranks']} {raw['gpu']}")
    return table, file, not incomplete and not any("error" in run for run in raw["runs"])


def main():
    arguments = parse_arguments()
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
    if arguments.platform == "cuda":
        table, file, complete = tune_gpus(arguments)
    else:
        table = host.make_table(arguments.perf, arguments.rounds, arguments.builtin)
        file, complete = HOST_TABLE, True
    target = file if arguments.builtin else arguments.output
    if target:
        tables.write(target, table)
    else:
        print(tables.dump(table))
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
