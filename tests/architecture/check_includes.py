"""Reads every #include of src/ and tools/ and fails on one that points the wrong way.

The layers and their order are those of docs/ and of the folder names under src/; what each may include is the table
below, written out rather than derived, so that a reader sees all that is allowed. Usage: check_includes.py ROOT
"""

import pathlib
import re
import sys

# Layer -> layers it may include, itself apart. Everybody may include base and the public header.
ALLOWED = {
    "api": {"comm", "dispatch", "collectives", "memory", "platform", "bootstrap", "numerics", "protocol"},
    "comm": {"dispatch", "collectives", "memory", "platform", "bootstrap", "topology", "numerics", "protocol"},
    "dispatch": {"topology", "numerics"},  # and collectives' descriptors, see DESCRIPTORS
    "collectives": {"memory", "platform", "bootstrap", "numerics", "protocol"},
    "memory": {"platform", "bootstrap", "protocol"},
    "platform": {"protocol"},
    "bootstrap": set(),
    "topology": set(),
    "numerics": set(),
    "protocol": set(),  # words and layout of the one-way signals
    "base": set(),
}
# What dispatch may read of the collectives: what they are, never how they run.
DESCRIPTORS = re.compile(r"collectives/(\w+/)?(descriptor|algorithm)\w*\.hpp$")
# platform/<one> is included by itself, by the registry that chooses among platforms, and by what runs the collectives'
# templates there: device code for cuda, collectives/host/ for host.
PLATFORMS = ("host", "cuda")
RUNS_ON = {"cuda": re.compile(r"\.cuh?$|^src/collectives/(\w+/)?cuda/"), "host": re.compile(r"^src/collectives/(\w+/)?host(/|\.)")}
REGISTRY = re.compile(r"^src/platform/registry\w*\.(hpp|cpp)$")

# Header prefix -> (pattern of the files that may include it, how many of the library or of one program may at most
# (None: any number), why). Tests are free to include all but Catch2 itself.
THIRD_PARTY = {
    "hwloc": (r"^(src/topology/|tools/)", None, "hwloc belongs to topology/ and to programs"),
    "spdlog/": (r"^src/base/log\.cpp$", 1, "spdlog belongs to base/log.cpp"),
    "fmt/": (r"^src/base/log\.cpp$", 1, "fmt belongs to base/log.cpp"),
    "CLI/": (r"^tools/", 1, "CLI11 belongs to one file of a program"),
    "nlohmann/": (r"\.cpp$", 1, "JSON is included by one .cpp of the library and one of each program"),
    "catch2/": (r"^tests/support/catch\.hpp$", 1, "tests include support/catch.hpp"),
    "cuda": (r"^(src/(platform|collectives)/cuda/.*|(src|tools)/.*\.cuh?|tools/[^/]+/\w+_cuda\.cpp)$", None,
             "vendor headers belong to the cuda folders, device code and a program's *_cuda.cpp"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}


def includes(path):
    """The (quote, header) pairs of a file, comments left out."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return INCLUDE.findall(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def platform_of(path):
    """host or cuda for a path under src/platform/<one>/, else None."""
    match = re.match(r"^(?:src/)?platform/(\w+)/", path)
    return match.group(1) if match and match.group(1) in PLATFORMS else None


def check_library(name, header):
    """Why src/ file `name` may not include project header `header`; None if it may."""
    layer, target = name.split("/")[1], header.split("/")[0]
    if layer not in ALLOWED:
        return f"src/{layer}/ is no layer of tests/architecture/check_includes.py"
    if target == "pkcomm":
        return None
    if target not in ALLOWED:
        return f'"{header}" is named neither from src/ nor from include/'
    if layer == "dispatch" and target == "collectives":
        return None if DESCRIPTORS.search(header) else "dispatch reads collectives' descriptors alone"
    if target not in ALLOWED[layer] | {layer, "base"}:
        return f"{layer} may not include {target}"
    wanted, own = platform_of(header), platform_of(name)
    if wanted and wanted != own and not REGISTRY.match(name):
        if own or not RUNS_ON[wanted].search(name):
            return f"platform/{wanted} is seen by itself, the platform registry and what runs there alone"
    return None


def check_tool(name, header, root):
    """Why tools/ file `name` may not include project header `header`; None if it may."""
    folder = pathlib.PurePosixPath(name).parent
    if header.startswith("pkcomm/") or (root / folder / header).exists():
        return None
    if header.startswith(f"{folder.name}/") and (root / "tools" / header).exists():
        return None
    return "a program includes <pkcomm/...> and its own folder alone"


def check_third_party(name, header):
    """Yields (prefix, reason or None) for each third-party header that `header` is."""
    for prefix, (pattern, _, reason) in THIRD_PARTY.items():
        if header.startswith(prefix) and (prefix == "catch2/" or not name.startswith("tests/")):
            yield prefix, None if re.search(pattern, name) else reason


def check(root):
    """All complaints about the tree at `root`, and the number of files read."""
    complaints, users = [], {}
    files = sorted(p for top in ("src", "tools", "tests") for p in (root / top).rglob("*") if p.suffix in SUFFIXES)
    for path in files:
        name = path.relative_to(root).as_posix()
        part = "src" if name.startswith("src/") else "/".join(name.split("/")[:2])  # the library, or one program
        for quote, header in includes(path):
            reasons = []
            for prefix, reason in check_third_party(name, header):
                users.setdefault((part, prefix), set()).add(name)
                reasons.append(reason)
            if quote == '"' or header.startswith("pkcomm/"):
                if name.startswith("src/"):
                    reasons.append(check_library(name, header))
                elif name.startswith("tools/"):
                    reasons.append(check_tool(name, header, root))
            complaints += [f"{name}: includes {header}: {reason}" for reason in reasons if reason]
    for (part, prefix), names in sorted(users.items()):
        most = THIRD_PARTY[prefix][1]
        if most is not None and len(names) > most:
            complaints.append(f"{part}: {prefix} is included by {len(names)} files: {', '.join(sorted(names))}")
    return complaints, len(files)


def main():
    complaints, count = check(pathlib.Path(sys.argv[1]))
    for complaint in complaints:
        print(complaint)
    print(f"{count} files read, {len(complaints)} includes refused")
    return 1 if complaints or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
