"""Tests of perf/tune.py: lines from times that are known, tables merged, and a whole run for GPUs with a stand-in for
pkcomm-perf. Where PKCOMM_PERF names the real one, the library must read the table that comes out."""

import contextlib
import io
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "perf"))

import stand_in
from tuning import costs, gpu, lines, tables

BUILTIN = sorted(tables.BUILTIN.glob("*.json.inc"))


def times(alpha_us, bytes_per_us, sizes=tuple(1 << n for n in range(4, 24, 2))):
    return {size: alpha_us + size / bytes_per_us for size in sizes}


def worst_miss(fitted, expected):
    return max(abs(lines.time_at(fitted, size, size) / (1000 * us) - 1) for size, us in expected.items())


class Lines(unittest.TestCase):
    def test_a_straight_line_comes_back(self):
        for alpha, rate in ((2.0, 28000), (6.5, 345000)):
            with self.subTest(alpha=alpha, rate=rate):
                line, = lines.fit(times(alpha, rate), lambda size: size, 8)
                self.assertEqual((line["from_bytes"], line["ctas"]), (0, 8))
                self.assertAlmostEqual(line["alpha_ns"], 1000 * alpha, delta=2)
                self.assertAlmostEqual(line["bytes_per_us"], rate, delta=rate / 1000)

    def test_a_bend_takes_two_lines(self):
        bent = {size: max(3 + size / 20000, 9 + size / 300000) for size in (1 << n for n in range(4, 26, 2))}
        fitted = lines.fit(bent, lambda size: size)
        self.assertLessEqual(len(fitted), lines.MOST_LINES)
        self.assertLess(worst_miss(fitted, bent), 0.05)

    def test_curves_grow_whatever_the_times(self):
        noisy = {size: us * (1.3 if i % 2 else 1) for i, (size, us) in enumerate(times(3, 100000).items())}
        for measured in (noisy, {**times(2, 50000), 1 << 22: 3000.0}):
            fitted = lines.fit(measured, lambda size: size)
            predicted = [lines.time_at(fitted, size, size) for size in range(8, 1 << 23, 4096)]
            self.assertEqual(predicted, sorted(predicted))

    def test_what_moves_nothing_costs_the_same_at_any_size(self):
        line, = lines.fit({0: 2.3}, lambda size: 0)
        self.assertEqual((line["alpha_ns"], line["bytes_per_us"]), (2300, lines.MOST_RATE))


class Costs(unittest.TestCase):
    def test_bytes_through_the_busiest_port(self):
        for collective, algorithm, path, expected in (
                ("all_reduce", "one_shot_ll", "staged", 6144), ("all_gather", "one_shot_ll", "staged", 1536),
                ("reduce", "two_shot_ll", "staged", 3072), ("all_reduce", "direct_ldst", "staged", 1536),
                ("reduce", "direct_ldst", "staged", 1536), ("reduce", "direct_ldst", "zero_copy", 3072),
                ("broadcast", "direct_ldst", "staged", 3072), ("scatter", "direct_tma", "staged", 768),
                ("barrier", "one_shot_ll", "staged", 0)):
            with self.subTest(collective=collective, algorithm=algorithm, path=path):
                self.assertEqual(costs.wire_bytes(collective, algorithm, path, 1024, 4), expected)


class Tables(unittest.TestCase):
    def curve(self, collectives, algorithms, paths, nranks=4, alpha=1):
        return {"collectives": collectives, "algorithms": algorithms, "paths": paths, "nranks": nranks,
                "source": "a test", "lines": [{"from_bytes": 0, "ctas": 1, "alpha_ns": alpha, "bytes_per_us": 1}]}

    def alphas(self, table):
        found = {}
        for curve in table["curves"]:
            for key in tables.keys(curve):
                self.assertNotIn(key, found)
                found[key] = curve["lines"][0]["alpha_ns"]
        return found

    def test_a_merge_replaces_what_was_measured_and_nothing_else(self):
        product = ["reduce", "gather"], ["direct_ldst", "direct_tma"], ["staged", "zero_copy"]
        old = {"name": "old", "curves": [self.curve(*product),
                                         self.curve(["reduce"], ["direct_ldst"], ["staged"], nranks=2)]}
        for measured in ([("reduce", "direct_ldst", "staged")],
                         [("reduce", "direct_ldst", "staged"), ("gather", "direct_ldst", "staged")],
                         [("reduce", "direct_ldst", "staged"), ("reduce", "direct_ldst", "zero_copy")],
                         list(itertools.product(*product)),
                         [("scatter", "direct_ldst", "staged")]):
            with self.subTest(measured=measured):
                merged = tables.merge(old, [self.curve([c], [a], [p], alpha=2) for c, a, p in measured])
                self.assertEqual(merged["name"], "old")
                self.assertEqual(self.alphas(merged), {**self.alphas(old), **{name + (4,): 2 for name in measured}})

    def test_built_in_tables_come_back_as_they_were(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in BUILTIN:
                table = tables.read(path)
                for copy in (pathlib.Path(folder) / "copy.json", pathlib.Path(folder) / "copy.json.inc"):
                    tables.write(copy, table)
                    self.assertEqual(tables.read(copy), table)

    def test_built_in_tables_are_found_by_gpu_and_ranks(self):
        self.assertEqual(tables.builtin_for("NVIDIA H200", 4).name, "h200x4.json.inc")
        self.assertIsNone(tables.builtin_for("NVIDIA H200", 3))
        self.assertIsNone(tables.builtin_for("Imaginary 9000", 4))


class Gpus(unittest.TestCase):
    """The program, with the stand-in."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = pathlib.Path(folder.name) / "table.json"
        self.raw = pathlib.Path(folder.name) / "table.raw.json"

    def tune(self, *flags, output=None, **environment):
        return subprocess.run([sys.executable, str(ROOT / "perf" / "tune.py"), "--platform", "cuda",
                               "--perf", str(HERE / "stand_in.py"), "--output", str(output or self.output), *flags],
                              env={**os.environ, "PKCOMM_CHUNK": "1", **environment},
                              stderr=subprocess.PIPE, text=True)

    def curves(self, output=None):
        return {key: curve for curve in tables.read(output or self.output)["curves"] for key in tables.keys(curve)}

    def check_against_the_formula(self, curves, ranks):
        measured = {name: curve for name, curve in curves.items() if "graph of" in curve["source"]}
        self.assertEqual(len(measured), 8 + 1 + 3 + 2 * 8)
        for (collective, algorithm, path, _), curve in measured.items():
            for ctas, some in gpu.by_ctas(curve).items():
                for size in (1 << n for n in range(6, 27)):
                    if not stand_in.fits(collective, algorithm, size, ranks):
                        continue
                    wire = costs.wire_bytes(collective, algorithm, path, size, ranks)
                    expected = stand_in.time_us(collective, algorithm, path, size, ranks, ctas)
                    miss = abs(lines.time_at(some, size, wire) / (1000 * expected) - 1)
                    self.assertLess(miss, 0.02, f"{collective} {algorithm} {path}, {ctas} CTAs, {size} bytes")

    def test_a_table_has_what_was_measured_and_what_was_there(self):
        for ranks in (2, 4):
            result = self.tune("--ranks", str(ranks))
            self.assertEqual(result.returncode, 0, result.stderr)
            before = tables.read(tables.builtin_for("NVIDIA H200", ranks))
            curves = self.curves()
            self.assertEqual(curves.keys(), {key for curve in before["curves"] for key in tables.keys(curve)})
            self.check_against_the_formula(curves, ranks)
            reduction = curves["reduce_scatter", "direct_ldst", "zero_copy", ranks]
            self.assertEqual({line["ctas"] for line in reduction["lines"]}, {1, 2, 4, 8, 16})
            self.assertEqual(reduction["threads"], 512)
            self.assertEqual(curves["barrier", "one_shot_ll", "staged", ranks]["threads"], 64)
            self.assertTrue(curves["reduce", "direct_tma", "zero_copy", ranks]["provisional"])

    def test_curves_are_made_again_of_the_times(self):
        self.assertEqual(self.tune("--ranks", "4", "--ctas", "8,32").returncode, 0)
        again = self.output.with_name("again.json")
        self.assertEqual(self.tune("--raw", str(self.raw), output=again).returncode, 0)
        self.assertEqual(again.read_text(), self.output.read_text())
        curve = self.curves(again)["all_reduce", "direct_ldst", "staged", 4]
        self.assertEqual({line["ctas"] for line in curve["lines"]}, {8, 32})

    def test_what_fails_leaves_the_curves_that_were_there(self):
        result = self.tune("--ranks", "2", "--ctas", "4,16", STAND_IN_FAILS="direct_ldst")
        self.assertEqual(result.returncode, 1)
        self.assertIn("stand-in: failed as asked", result.stderr)
        self.assertIn("gather direct_ldst staged: not measured with every number of CTAs", result.stderr)
        curves, before = self.curves(), self.curves(tables.builtin_for("NVIDIA H200", 2))
        stays, measured, other = [(collective, algorithm, "staged", 2) for collective, algorithm in
                                  (("gather", "direct_ldst"), ("all_reduce", "direct_ldst"), ("gather", "one_shot_ll"))]
        self.assertEqual(curves[stays], before[stays])
        self.assertNotEqual(curves[measured], before[measured])  # before it failed
        self.assertNotEqual(curves[other], before[other])
        errors = [run["error"] for run in json.loads(self.raw.read_text())["runs"] if "error" in run]
        self.assertTrue(errors and all("failed as asked" in error for error in errors))

    def test_a_run_that_hangs_is_ended(self):
        with mock.patch.object(gpu, "RUN_LIMIT_S", 1), mock.patch.dict(os.environ, STAND_IN_HANGS="direct_ldst"):
            with contextlib.redirect_stderr(io.StringIO()):
                raw = gpu.measure(HERE / "stand_in.py", 2, [4], 60)
        for run in raw["runs"]:
            self.assertEqual("not done within 1 s" in run.get("error", ""), run["algorithm"] == "direct_ldst")
            self.assertEqual(bool(run["rows"]), run["algorithm"] != "direct_ldst")

    def test_nothing_begins_that_the_budget_has_no_time_for(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            raw = gpu.measure(HERE / "stand_in.py", 2, [4], gpu.RUN_LEAST_S - 1)
        self.assertEqual(raw["runs"], [])
        self.assertIn("0 of 10 runs in 7 s", errors.getvalue())

    @unittest.skipUnless(os.environ.get("PKCOMM_PERF"), "PKCOMM_PERF names no pkcomm-perf")
    def test_the_library_reads_the_table(self):
        self.assertEqual(self.tune("--ranks", "4").returncode, 0)
        table = tables.read(self.output)
        table["name"] = "just measured"
        tables.write(self.output, table)
        machine = ROOT / "tests" / "fixtures" / "topologies" / "h200x4.json"
        explained = subprocess.run([os.environ["PKCOMM_PERF"], "all_reduce", "-g", "4", "-b", "1M", "-e", "1M",
                                    "--explain", "--topology", str(machine)],
                                   env={**os.environ, "PKCOMM_TUNING": str(self.output)}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True).stdout
        self.assertIn("just measured", explained)
        self.assertNotIn("using the built-in table", explained)


if __name__ == "__main__":
    unittest.main()
