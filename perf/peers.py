#!/usr/bin/env python3
"""What users of PyTorch have: torch's symmetric memory and NCCL, in CUDA graphs, with pkcomm-perf's columns.

For each collective and size it times, by the same method as pkcomm-perf --graph, whichever of these apply:
  nccl             torch.distributed over NCCL
  nccl_symmetric   the same with buffers in symmetric windows (NCCL 2.27, torch 2.9)
  torch_one_shot   torch.ops.symm_mem.one_shot_all_reduce_out
  torch_two_shot   torch.ops.symm_mem.two_shot_all_reduce_
A time is the greatest over the ranks, of --repeats repetitions the median; the ranks meet on the stream
before each, and the stream is held while the graph is enqueued. Each result is checked once, on numbers with exact
sums. What a peer cannot do on some rank is left out on all, and a line says why.

Multicast objects are switched off for every process, whatever the environment says, and torch's symmetric memory is its
own rather than NVSHMEM's.

Usage: perf/peers.py -g 4 [all_reduce,all_gather,reduce_scatter,all_to_all] -b 8 -e 64M -f 4 [-d bfloat16]
                     [--json FILE]
"""

import argparse
import datetime
import json
import os
import socket
import statistics
import subprocess
import sys
import time

SWITCHES = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1",
            "TORCH_SYMMMEM": "CUDA"}
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
# The kind of memory that each is about.
PEERS = {"nccl": "plain", "nccl_symmetric": "windows", "torch_one_shot": "shared", "torch_two_shot": "shared"}
ONLY_ALL_REDUCE = {"torch_one_shot", "torch_two_shot"}
IN_PLACE = {("all_reduce", "nccl"), ("all_reduce", "nccl_symmetric"), ("all_reduce", "torch_two_shot")}
ONE_SHOT_LIMIT = 16 << 20  # beyond, every rank reads everything from everybody: seconds, and nobody does it
GRANULE = 16  # bytes: torch's kernels and NCCL's windows want whole vectors, on every rank's part


def size_of(text):
    """Bytes of '64K' and the like, powers of 1024."""
    unit = "KMGT".find(text[-1:].upper()) + 1
    return int(float(text[:-1] if unit else text) * 1024 ** unit)


def calls_in_graph(most, size):
    """pkcomm-perf's rule: fewer calls where they take long."""
    return most if size <= 4 << 20 or most <= 4 else max(4, most * (4 << 20) // size)


def bus_factor(collective, ranks):
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


class Rank:
    """One rank: its process group, and how long a collective takes by each peer."""

    def __init__(self, options):
        import torch
        import torch.distributed as dist
        self.torch, self.dist, self.options = torch, dist, options
        self.rank, self.ranks = options.rank, options.ngpus
        self.device = torch.device("cuda", self.rank % torch.cuda.device_count())
        torch.cuda.set_device(self.device)
        store = dist.TCPStore("127.0.0.1", options.port, self.ranks, is_master=self.rank == 0)
        dist.init_process_group("nccl", store=store, rank=self.rank, world_size=self.ranks,
                                device_id=self.device)
        self.board = dist.PrefixStore("peers", store)  # where ranks say how they fared
        self.steps = 0
        self.group = dist.group.WORLD.group_name
        self.dtype = getattr(torch, options.dtype)
        self.element = torch.empty(0, dtype=self.dtype).element_size()
        self.token = torch.zeros(1, dtype=torch.int32, device=self.device)
        self.memory = {}  # kind: two tensors that hold the greatest size
        self.pools = []   # memory that windows lie in

    def agreed(self, step, *arguments):
        """(what the step returns, None), or on every rank (None, trouble) where any rank met some."""
        value, word = None, "fine"
        try:
            value = step(*arguments)
        except Exception as error:  # whatever it is, the other peers can still be measured
            word = f"{type(error).__name__}: {error}".splitlines()[0]
        self.steps += 1
        self.board.set(f"{self.steps}/{self.rank}", word)
        for rank in range(self.ranks):
            said = self.board.get(f"{self.steps}/{rank}").decode()
            if said != "fine":
                return None, f"rank {rank}: {said}"
        return value, None

    def allocate(self, kind, elements):
        """Two tensors of `elements`."""
        torch = self.torch
        new = lambda count: torch.empty(count, dtype=self.dtype, device=self.device)  # noqa: E731
        if kind == "shared":
            import torch.distributed._symmetric_memory as symmetric
            send = symmetric.empty(elements, dtype=self.dtype, device=self.device)
            symmetric.rendezvous(send, self.group)
            return send, new(elements)
        if kind == "plain":
            return new(elements), new(elements)
        backend = self.dist.group.WORLD._get_backend(self.device)
        pool = torch.cuda.MemPool(backend.mem_allocator)
        # In one piece: two windows might be registered in another order on another rank.
        with torch.cuda.use_mem_pool(pool):
            both = new(2 * elements)
        backend.register_mem_pool(pool, symm=True)
        self.pools.append(pool)
        return both[:elements], both[elements:]

    def close(self):
        """NCCL wants its windows back before its communicator ends."""
        backend = self.dist.group.WORLD._get_backend(self.device)
        for pool in self.pools:
            backend.deregister_mem_pool(pool)
        self.memory.clear()
        self.dist.destroy_process_group()

    def call(self, collective, peer, send, recv, size):
        """(a function that enqueues one call, its input, its output) for `size` bytes in all."""
        count = size // self.element
        block = count // self.ranks
        dist, ops = self.dist, self.torch.ops.symm_mem
        if collective == "all_reduce":
            x, out = send[:count], recv[:count]
            return {
                "torch_one_shot": (lambda: ops.one_shot_all_reduce_out(x, "sum", self.group, out), x, out),
                "torch_two_shot": (lambda: ops.two_shot_all_reduce_(x, "sum", self.group), x, x),
            }.get(peer, (lambda: dist.all_reduce(x), x, x))
        if collective == "all_gather":
            x, out = send[:block], recv[:block * self.ranks]
            return (lambda: dist.all_gather_into_tensor(out, x)), x, out
        if collective == "reduce_scatter":
            x, out = send[:block * self.ranks], recv[:block]
            return (lambda: dist.reduce_scatter_tensor(out, x)), x, out
        x, out = send[:block * self.ranks], recv[:block * self.ranks]
        return (lambda: dist.all_to_all_single(out, x)), x, out

    def wrong(self, collective, function, x, out):
        """Elements, over all ranks, that are not what they must be."""
        torch = self.torch
        place = torch.arange(x.numel(), device=self.device)
        # Small integers: any sum of them, in any order, is exact in every type.
        of = lambda rank, at: ((at + rank) % 3).to(self.dtype)  # noqa: E731
        x.copy_(of(self.rank, place))
        function()
        torch.cuda.synchronize()
        ranks = range(self.ranks)
        if collective == "all_reduce":
            expected = sum(of(r, place) for r in ranks)
        elif collective == "all_gather":
            expected = torch.cat([of(r, place) for r in ranks])
        elif collective == "reduce_scatter":
            mine = place[:out.numel()] + self.rank * out.numel()
            expected = sum(of(r, mine) for r in ranks)
        else:
            block = out.numel() // self.ranks
            expected = torch.cat([of(r, place[:block] + self.rank * block) for r in ranks])
        bad = (out != expected).sum()
        self.dist.all_reduce(bad)
        x.zero_()  # sums in place stay what they are, however often they are repeated
        return int(bad.item())

    def time_us(self, function, size):
        """Microseconds of one call within a graph."""
        torch, calls = self.torch, calls_in_graph(self.options.graph_calls, size)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                function()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                for _ in range(calls):
                    function()
            graph.replay()
            torch.cuda.synchronize()
            times = []
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            for _ in range(self.options.repeats):
                self.dist.barrier()
                torch.cuda.synchronize()
                torch.cuda._sleep(1_000_000)  # half a millisecond in which everything is enqueued
                self.dist.all_reduce(self.token)
                start.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                times.append(start.elapsed_time(end) * 1e3 / calls)
            slowest = torch.tensor(times, dtype=torch.float64, device=self.device)
            self.dist.all_reduce(slowest, op=self.dist.ReduceOp.MAX)
            graph.reset()
        return statistics.median(slowest.tolist())

    def measure(self, collective, peer, sizes, emit):
        """Calls `emit` with a row for each size, or with why there is none."""
        send, recv = self.memory[PEERS[peer]]
        for size in sizes:
            if peer == "torch_one_shot" and size > ONE_SHOT_LIMIT:
                continue
            function, x, out = self.call(collective, peer, send, recv, size)
            wrong, trouble = self.agreed(self.wrong, collective, function, x, out)
            if trouble is None:
                time_us, trouble = self.agreed(self.time_us, function, size)
            if trouble is not None:
                emit(None, f"{peer}, {size} bytes: {trouble}")
                continue
            algbw = size / time_us * 1e-3
            half = {"time": time_us, "alg_bw": algbw, "bus_bw": algbw * bus_factor(collective, self.ranks),
                    "nwrong": wrong}
            in_place = (collective, peer) in IN_PLACE
            count = size // self.element // (1 if collective == "all_reduce" else self.ranks)
            emit({"collective": collective, "size": size, "count": count, "type": self.options.dtype,
                  "redop": "sum" if "reduce" in collective else "none", "root": -1, "algorithm": peer,
                  "mechanism": "-", "ctas": 0, "out_of_place": None if in_place else half,
                  "in_place": half if in_place else None}, None)

    def run(self):
        options, results = self.options, []
        granule = GRANULE * self.ranks
        sizes, size = [], options.minbytes
        while size <= options.maxbytes:
            rounded = max(size // granule, 1) * granule
            if rounded not in sizes:
                sizes.append(rounded)
            size *= options.factor

        def emit(row, trouble):
            if self.rank != 0:
                return
            if row is None:
                print(f"# {trouble}", flush=True)
                return
            results.append(row)
            print(line(row), flush=True)

        if self.rank == 0:
            print_head(self)
        for kind in dict.fromkeys(PEERS[peer] for peer in options.peers):
            pair, trouble = self.agreed(self.allocate, kind, max(sizes) // self.element)
            if trouble is None:
                self.memory[kind] = pair
            else:
                emit(None, f"no {kind} memory: {trouble}")
        for collective in options.collectives:
            if self.rank == 0:
                print(f"#\n# Collective test starting: {collective}\n#\n{HEADING}", flush=True)
            for peer in options.peers:
                if PEERS[peer] in self.memory and (peer not in ONLY_ALL_REDUCE or collective == "all_reduce"):
                    self.measure(collective, peer, sizes, emit)
        if self.rank == 0 and options.json:
            write_json(self, results)
        self.close()
        return 1 if any((r["out_of_place"] or r["in_place"])["nwrong"] for r in results) else 0


HEADING = (f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}"
           + f"  {'time':>7}  {'algbw':>6}  {'busbw':>6}  {'#wrong':>6}" * 2
           + f"  {'algorithm':<16}  {'mechanism':<12}  CTAs\n"
           + f"# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}  {'':>6}"
           + f"  {'(us)':>7}  {'(GB/s)':>6}  {'(GB/s)':>6}  {'':>6}" * 2)


def line(row):
    """A row as pkcomm-perf prints it."""
    text = f"{row['size']:>12}  {row['count']:>12}  {row['type']:>8}  {row['redop']:>6}  {row['root']:>6}"
    for half in (row["out_of_place"], row["in_place"]):
        if half is None:
            text += f"  {'nan':>7}  {'nan':>6}  {'nan':>6}  {'N/A':>6}"
        else:
            text += (f"  {half['time']:>7.2f}  {half['alg_bw']:>6.2f}  {half['bus_bw']:>6.2f}"
                     f"  {half['nwrong']:>6}")
    return text + f"  {row['algorithm']:<16}  {row['mechanism']:<12}  {row['ctas']:>4}"


def versions(torch):
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "nccl": nccl}


def print_head(rank):
    found = versions(rank.torch)
    print(f"# torch {found['torch']}, CUDA {found['cuda']}, NCCL {found['nccl']}, {rank.ranks} ranks on "
          f"{rank.torch.cuda.get_device_name()}\n# {', '.join(f'{k}={v}' for k, v in SWITCHES.items())}\n"
          f"# graph: {rank.options.graph_calls} calls captured in one (fewer above 4 MiB)\n"
          f"# times are medians of {rank.options.repeats} repetitions", flush=True)


def write_json(rank, results):
    options = rank.options
    document = {
        "version": 1,
        "args": sys.argv,
        "end_time": datetime.datetime.now().isoformat(timespec="seconds"),
        "env": [f"{name}={value}" for name, value in SWITCHES.items()],
        "versions": versions(rank.torch),
        "config": {"ranks": rank.ranks, "timing": "graph", "graph_calls": options.graph_calls,
                   "repeats": options.repeats, "device_info": rank.torch.cuda.get_device_name()},
        "results": results}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
        file.write("\n")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(options):
    """Starts the ranks and waits; when one fails, or time is up, all end."""
    port = free_port()
    environment = {**os.environ, **SWITCHES}
    command = [sys.executable, *sys.argv, "--port", str(port)]
    ranks = [subprocess.Popen([*command, "--rank", str(i)], env=environment) for i in range(options.ngpus)]
    deadline = time.monotonic() + options.timeout
    try:
        while any(rank.poll() is None for rank in ranks):
            if any(rank.poll() not in (None, 0) for rank in ranks):
                time.sleep(1)  # for the others to say their part
                return 1
            if time.monotonic() > deadline:
                print(f"perf/peers.py: not done after {options.timeout} s", file=sys.stderr)
                return 1
            time.sleep(0.05)
        return max(rank.returncode for rank in ranks)
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()


def names(known):
    """A reader of words separated by commas, each out of `known`."""
    def read(text):
        words = text.split(",")
        for word in words:
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}': expected some of {', '.join(known)}")
        return words
    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collectives", nargs="?", type=names(COLLECTIVES), default=COLLECTIVES)
    parser.add_argument("-g", "--ngpus", type=int, required=True, help="ranks, a process and a GPU each")
    parser.add_argument("-b", "--minbytes", type=size_of, default=1024)
    parser.add_argument("-e", "--maxbytes", type=size_of, default=64 << 20)
    parser.add_argument("-f", "--factor", type=int, default=4)
    parser.add_argument("-d", "--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--peers", type=names(PEERS), default=list(PEERS))
    parser.add_argument("--graph-calls", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--timeout", type=int, default=540, metavar="S", help="seconds for everything")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ngpus < 2 or options.factor < 2 or not 0 < options.minbytes <= options.maxbytes:
        parser.error("-g and -f are 2 or more, and -b is at most -e")
    if options.rank is None:
        return start_ranks(options)
    os.environ.update(SWITCHES)  # before torch reads them
    return Rank(options).run()


if __name__ == "__main__":
    sys.exit(main())
