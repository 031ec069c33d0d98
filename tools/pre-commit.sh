#!/usr/bin/env bash
# What to run before a commit: format check and clang-tidy on the files that differ from HEAD, the host build, and the
# tests that take seconds. To have git run it: ln -s ../../tools/pre-commit.sh .git/hooks/pre-commit
set -euo pipefail
root=$(git rev-parse --show-toplevel)
cd "$root"
# shellcheck source=scripts/common.sh
source scripts/common.sh

changed() {  # names of changed and new files that match, one a line
  { git diff --name-only --diff-filter=ACMR HEAD && git ls-files --others --exclude-standard; } | grep -E "$1" || true
}

mapfile -t formatted < <(changed '\.(h|hpp|c|cpp|cu|cuh)$')
[ ${#formatted[@]} -eq 0 ] || scripts/format --check "${formatted[@]}"

build_preset host release
mapfile -t tidied < <(changed '^(src|tools)/.*\.cpp$')
for file in "${tidied[@]}"; do
  # Files of a platform that this build leaves out have no compile command.
  if grep -qF "$root/$file" build/release/compile_commands.json; then
    clang-tidy --quiet -p build/release "$file"
  fi
done
run_tests release --test-dir build/release -L 'unit|architecture|packaging'
