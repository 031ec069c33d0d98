#!/usr/bin/env bash
# Installs into an empty directory, moves it (nothing may depend on where it was installed), and builds and runs the
# program in consumer/ against it, by pkg-config and by find_package. Usage: install_test.sh CMAKE BUILD_DIR CC LIBDIR
set -euo pipefail
cmake=$1 build=$2 cc=$3 libdir=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKCOMM_PLATFORM=host

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
for file in include/pkcomm/pkcomm.h "$libdir/libpkcomm.so" "$libdir/pkgconfig/pkcomm.pc"; do
  test -e "$prefix/$file" || { echo "not installed: $file"; exit 1; }
done

export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
# shellcheck disable=SC2046  # pkg-config's output is words
"$cc" -std=c99 -Wall -Wextra -Werror -pedantic "$here/consumer/main.c" -o "$work/by-pkg-config" \
  $(pkg-config --cflags --libs pkcomm)
LD_LIBRARY_PATH=$prefix/$libdir "$work/by-pkg-config"
echo "pkg-config: built and ran, version $(pkg-config --modversion pkcomm)"

"$cmake" -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >"$work/cmake.log"
"$cmake" --build "$work/build" >>"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
"$work/build/consumer"
echo "find_package: built and ran"

# Installed programs find the installed library by themselves.
for program in "$prefix"/bin/*; do
  test -x "$program" || continue
  if ldd "$program" | grep -q "not found"; then
    echo "$program does not find its libraries:"
    ldd "$program"
    exit 1
  fi
done
