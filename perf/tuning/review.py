"""What is looked at before a table is used: that its curves grow, and how well it chooses among what was measured."""

import statistics
import sys


def require_growth(name, predict):
    """Ends the program where `predict`, ns for a size, falls anywhere between 8 bytes and 128 MiB."""
    previous = 0
    for step in range(24 * 8):
        size = int(8 * 2 ** (step / 8)) // 8 * 8
        now = predict(size)
        if now < previous * 0.999 - 1:
            sys.exit(f"tune.py: the curve of {name} falls at {size} bytes: {previous:.0f} to {now:.0f} ns")
        previous = now


def print_choices(path, misses):
    """`misses`: (time of the choice by that of the best, collective, size, chosen, best)."""
    if not misses:
        return
    misses = sorted(misses, reverse=True)
    mean = statistics.mean(miss[0] for miss in misses)
    print(f"{path}: choices take {mean:.3f} of the best on average; the worst:", file=sys.stderr)
    for ratio, collective, size, chosen, quickest in misses[:6]:
        print(f"  {ratio:5.2f}  {collective} {size}: {chosen}, quickest {quickest}", file=sys.stderr)
