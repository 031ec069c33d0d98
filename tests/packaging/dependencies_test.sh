#!/usr/bin/env bash
# The library needs the C and C++ runtimes and hwloc; no CUDA, no fmt, no spdlog, and no search path of the machine it
# was built on. Usage: dependencies_test.sh LIBRARY
set -euo pipefail
dynamic=$(readelf -d "$1")
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
foreign=$(grep -vE '^(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libc\+\+|libatomic|libhwloc|ld-linux.*)\.so' \
  <<<"$needed" || true)
if [ -n "$foreign" ]; then
  printf 'needs more than it should:\n%s\n' "$foreign"
  exit 1
fi
if grep -E '\((RPATH|RUNPATH)\)' <<<"$dynamic"; then
  echo "has a search path of its own"
  exit 1
fi
if ! grep -q 'SONAME.*\[libpkcomm\.so\.[0-9]*\]' <<<"$dynamic"; then
  echo "has no soname with a version"
  exit 1
fi
printf 'needs: %s\n' "$(tr '\n' ' ' <<<"$needed")"
