#!/usr/bin/env python3
"""Stands in for pkcomm-perf on GPUs: the same flags, variables and files, times by a formula.

STAND_IN_FAILS names an algorithm that ends in an error after its first collective, STAND_IN_HANGS one that never ends.
"""

import argparse
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "perf"))
from tuning import costs

ALPHA_US = {"one_shot_ll": 2.0, "two_shot_ll": 5.0, "direct_ldst": 7.0}
BLOCK_MOST = 128 << 10  # in packets
STAGED_US = 1.0
BYTES_PER_US_AND_CTA = 25000
HEADER = "collective,size_bytes,placement,time_us,algorithm,ctas"


def time_us(collective, algorithm, path, size, ranks, ctas):
    staged = STAGED_US if algorithm == "direct_ldst" and path == "staged" else 0
    wire = costs.wire_bytes(collective, algorithm, path, size, ranks)
    return ALPHA_US[algorithm] + staged + wire / (BYTES_PER_US_AND_CTA * ctas)


def fits(collective, algorithm, size, ranks):
    split = collective in costs.SIZED_BY_BLOCKS or algorithm == "two_shot_ll"
    return algorithm == "direct_ldst" or (size // ranks if split else size) <= BLOCK_MOST


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("collectives")
    for flag in ("-g", "-b", "-e", "-f", "-c", "-R", "--graph-calls", "--repeats"):
        parser.add_argument(flag, type=int, required=True)
    for flag in ("--platform", "--algorithm", "--csv", "--json"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--graph", action="store_true", required=True)
    options = parser.parse_args()
    ctas = int(os.environ["PKCOMM_MIN_CTAS"])
    switches = {name: os.environ[name] for name in ("NCCL_NVLS_ENABLE", "PKCOMM_MULTICAST")}
    if os.environ["PKCOMM_MAX_CTAS"] != str(ctas) or switches != {"NCCL_NVLS_ENABLE": "0", "PKCOMM_MULTICAST": "off"}:
        sys.exit("stand-in: wrong environment")
    if (options.R == 2) != ("PKCOMM_TUNING" in os.environ):
        sys.exit("stand-in: nothing keeps windows from being staged")
    if os.environ.get("STAND_IN_HANGS") == options.algorithm:
        time.sleep(3600)
    path = "zero_copy" if options.R == 2 else "staged"
    with open(options.csv, "w") as out:
        print(HEADER, file=out)
        for collective in options.collectives.split(","):
            size = options.b
            while size <= options.e:
                done_by = options.algorithm if fits(collective, options.algorithm, size, options.g) else "direct_ldst"
                us = time_us(collective, done_by, path, size, options.g, ctas)
                moved = 0 if collective == "barrier" else size
                print(f"{collective},{moved},out_of_place,{us:.3f},{done_by},{ctas}", file=out)
                print(f"{collective},{moved},in_place,{us / 2:.3f},{done_by},{ctas}", file=out)
                size = options.e + 1 if collective == "barrier" else size * options.f
            if os.environ.get("STAND_IN_FAILS") == options.algorithm:
                out.write(f"{collective},{size},out_of")  # torn
                sys.exit("stand-in: failed as asked")
    pathlib.Path(options.json).write_text(json.dumps({"devices": [{"device_info": "NVIDIA H200"}]}))


if __name__ == "__main__":
    main()
