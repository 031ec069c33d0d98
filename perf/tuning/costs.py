"""What the dispatcher prices, as src/collectives/descriptors.cpp has it: a table's lines are over these bytes."""

SYMMETRIC = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
ROOTED = ["reduce", "broadcast", "gather", "scatter"]
TWO_SHOT = ["all_reduce", "reduce", "broadcast"]
SWITCHED = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
SIZED_BY_BLOCKS = {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}
WITHOUT_COMMON_SIZE = {"barrier", "send_recv", "all_to_all_v"}  # priced as if they moved nothing


def wire_bytes(collective, algorithm, path, size, ranks):
    """Through the busiest rank's port, tags of packets included; `size` counts all blocks where there are blocks."""
    blocks = collective in SIZED_BY_BLOCKS
    shares = (ranks - 1) * (size // ranks)  # each peer has another part
    copies = (ranks - 1) * size  # each peer has all
    if collective in WITHOUT_COMMON_SIZE:
        return 0
    if algorithm == "one_shot_ll":
        return 2 * (shares if blocks else copies)
    if algorithm == "two_shot_ll":
        return 4 * shares
    if algorithm == "multimem_emulated":
        return 2 * shares if collective == "all_reduce" else copies if collective == "broadcast" else shares
    if blocks:
        return shares
    if collective == "broadcast" or (collective == "reduce" and path == "zero_copy"):
        return copies  # the root serves everybody, or reads from everybody
    return 2 * shares


def windows_only(platform, ranks):
    """A table by which staging costs a second, so that windows are used wherever there are any."""
    curve = {"collectives": SYMMETRIC + ROOTED, "algorithms": ["direct_ldst", "direct_tma", "copy_engine"],
             "paths": ["staged"], "nranks": ranks, "source": "to measure the other path",
             "lines": [{"from_bytes": 0, "ctas": 1, "alpha_ns": 1 << 30, "bytes_per_us": 1}]}
    return {"schema": 1, "name": "windows only", "machine": {"platform": platform}, "curves": [curve]}
