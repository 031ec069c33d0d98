# Sourced by the scripts here and by .ci/run: what must be installed, and how a preset is built. Quiet unless something
# fails; then the log is shown. Expects `set -euo pipefail` and $root, the project's directory.
# shellcheck shell=bash disable=SC2154

note() { printf '%s\n' "$*" >&2; }

# Runs a command with its output in a log; shows the log's end if it fails.
logged() {
  local log=$1
  shift
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    tail -n 100 "$log" >&2
    note "failed: $* (whole log: $log)"
    return 1
  fi
}

have_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }
have_catch2() { have_header catch2/catch.hpp || have_header catch2/catch_all.hpp; }

# Names the Debian packages that lack, one a line, for the purposes given: build, test, bundle, sanitize.
missing_packages() {
  local purpose
  for purpose in "$@"; do
    case $purpose in
      build)
        command -v cmake >/dev/null || echo cmake
        command -v ninja >/dev/null || echo ninja-build
        command -v g++ >/dev/null || echo g++
        command -v pkg-config >/dev/null || echo pkg-config
        pkg-config --exists hwloc 2>/dev/null || echo libhwloc-dev
        have_header spdlog/logger.h || echo libspdlog-dev
        have_header spdlog/fmt/bundled/core.h || have_header fmt/format.h || echo libfmt-dev
        have_header nlohmann/json.hpp || echo nlohmann-json3-dev
        have_header CLI/CLI.hpp || echo libcli11-dev
        ;;
      test)
        have_catch2 || echo catch2
        command -v python3 >/dev/null || echo python3
        command -v spin >/dev/null || echo spin
        command -v gnuplot >/dev/null || echo gnuplot-nox
        command -v patchelf >/dev/null || echo patchelf
        ;;
      bundle)
        command -v patchelf >/dev/null || echo patchelf
        ;;
      sanitize)
        command -v clang++ >/dev/null || echo clang
        command -v clang-format >/dev/null || echo clang-format
        ;;
    esac
  done
}

# Installs what lacks; does nothing, and asks for no rights, where nothing does.
install_missing() {
  local packages
  mapfile -t packages < <(missing_packages "$@" | sort -u)
  [ ${#packages[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    note "missing, and there is no apt-get to install it with: ${packages[*]} (names of Debian packages)"
    return 1
  fi
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  note "installing ${packages[*]}"
  mkdir -p "$root/build"
  local log=$root/build/apt.log
  : >"$log"
  # The lists may be of the day the machine was made; an update that fails leaves those, which may do.
  "${as_root[@]}" apt-get update >>"$log" 2>&1 </dev/null || note "apt-get update failed; trying with the lists at hand"
  logged "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    "${packages[@]}"
}

# Configures a preset and builds targets of it (all, if none is named) in build/DIRECTORY, with a log there.
# Usage: build_preset PRESET DIRECTORY [TARGET...]
build_preset() {
  local preset=$1 directory=$root/build/$2
  shift 2
  mkdir -p "$directory"
  local log=$directory/build.log
  : >"$log"
  local options=()
  [ "$preset" != host ] || options=("-DPKCOMM_CUDA=${PKCOMM_CUDA:-AUTO}")
  logged "$log" cmake --preset "$preset" "${options[@]}"
  logged "$log" cmake --build "$directory" --parallel "$(nproc)" ${1:+--target "$@"}
}

# Runs ctest with the arguments given; shows its closing lines, and before them what failed. Usage: run_tests DIRECTORY
# CTEST_ARGUMENT...
run_tests() {
  local log=$root/build/$1/test.log
  shift
  local status=0
  ctest --output-on-failure --no-tests=error --parallel "${CTEST_PARALLEL_LEVEL:-2}" "$@" >"$log" 2>&1 </dev/null ||
    status=$?
  if [ "$status" -ne 0 ]; then
    grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#.* Passed )' "$log" >&2 || true
    note "whole log: $log"
    return "$status"
  fi
  sed -n '/tests passed/p; /^Total Test time/p' "$log"
}
