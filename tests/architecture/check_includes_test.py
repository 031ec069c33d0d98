"""Tests of check_includes.py: small trees with one include each, allowed or not."""

import pathlib
import tempfile
import unittest

from check_includes import check


def complaints(name, line, also=()):
    """What check() says about a tree whose only include is `line` in file `name`."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for path, text in ((name, line + "\n"), *((other, "") for other in also)):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return check(root)[0]


class CheckIncludes(unittest.TestCase):
    def test_allowed(self):
        for name, line in (
            ("src/api/a.cpp", '#include "comm/communicator.hpp"'),
            ("src/comm/a.cpp", '#include "topology/topology.hpp"'),
            ("src/dispatch/a.cpp", '#include "collectives/descriptors.hpp"'),
            ("src/dispatch/a.cpp", '#include "collectives/algorithm.hpp"'),
            ("src/dispatch/tuning_json.cpp", "#include <nlohmann/json.hpp>"),
            ("src/memory/a.cpp", '#include "platform/memory.hpp"'),
            ("src/platform/registry.cpp", '#include "platform/host/platform.hpp"'),
            ("src/collectives/all_reduce/one_shot.cu", '#include "platform/cuda/packet.cuh"'),
            ("src/collectives/host/a.cpp", '#include "platform/host/policy.hpp"'),
            ("src/platform/host/a.cpp", '#include "protocol/layout.hpp"'),
            ("src/collectives/all_reduce/one_shot.cu", "#include <cuda_runtime.h>"),
            ("src/platform/cuda/a.cpp", "#include <cuda.h>"),
            ("src/base/log.cpp", "#include <spdlog/logger.h>"),
            ("src/topology/a.cpp", "#include <hwloc.h>"),
            ("src/comm/a.cpp", '// #include "api/boundary.hpp"'),
            ("src/comm/a.cpp", '#include "pkcomm/pkcomm.h"'),
            ("tools/pkcomm-perf/a.cpp", "#include <pkcomm/pkcomm.h>"),
            ("tests/support/catch.hpp", "#include <catch2/catch.hpp>"),
        ):
            with self.subTest(name=name, line=line):
                self.assertEqual(complaints(name, line), [])

    def test_refused(self):
        for name, line in (
            ("src/comm/a.cpp", '#include "api/boundary.hpp"'),
            ("src/base/a.cpp", '#include "memory/heap.hpp"'),
            ("src/memory/a.cpp", '#include "collectives/descriptors.hpp"'),
            ("src/dispatch/a.cpp", '#include "collectives/all_reduce/host.hpp"'),
            ("src/dispatch/a.cpp", '#include "memory/heap.hpp"'),
            ("src/topology/a.cpp", '#include "platform/platform.hpp"'),
            ("src/collectives/a.cpp", '#include "topology/topology.hpp"'),
            ("src/bootstrap/a.cpp", '#include "platform/platform.hpp"'),
            ("src/platform/host/a.cpp", '#include "platform/cuda/driver.hpp"'),
            ("src/platform/cuda/a.cu", '#include "platform/host/stream.hpp"'),
            ("src/memory/a.cpp", '#include "platform/host/stream.hpp"'),
            ("src/collectives/a.cpp", '#include "platform/host/policy.hpp"'),
            ("src/comm/a.cpp", "#include <hwloc.h>"),
            ("src/comm/a.cpp", "#include <spdlog/spdlog.h>"),
            ("src/platform/host/a.cpp", "#include <cuda.h>"),
            ("src/comm/a.hpp", "#include <nlohmann/json.hpp>"),
            ("src/shared/a.cpp", '#include "base/log.hpp"'),
            ("src/comm/a.cpp", '#include "helper.hpp"'),
            ("tools/pkcomm-perf/a.cpp", '#include "base/log.hpp"'),
            ("tests/unit/a.cpp", "#include <catch2/catch.hpp>"),
        ):
            with self.subTest(name=name, line=line):
                self.assertEqual(len(complaints(name, line)), 1)

    def test_a_program_may_include_its_own_folder(self):
        self.assertEqual(complaints("tools/p/a.cpp", '#include "b.hpp"', also=["tools/p/b.hpp"]), [])

    def test_json_is_included_once(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            (root / "src/dispatch").mkdir(parents=True)
            for name in ("a.cpp", "b.cpp"):
                (root / "src/dispatch" / name).write_text("#include <nlohmann/json.hpp>\n", encoding="utf-8")
            self.assertEqual(len(check(root)[0]), 1)


if __name__ == "__main__":
    unittest.main()
