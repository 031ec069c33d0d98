#!/usr/bin/env bash
# Makes the bundle for GPU machines, moves it, and starts what is in it from another folder with an empty environment; its
# runner must refuse to go on without a GPU, after the safety check. Usage: gpu_bundle_test.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
command -v patchelf >/dev/null || { echo "skipped: patchelf is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$source/scripts/gpu-bundle" --from "$build" "$work/made"
mv "$work/made" "$work/moved"
bundle=$work/moved
mb=$(du -sm --apparent-size "$bundle" | cut -f 1)
[ "$mb" -le 50 ] || { echo "the bundle has $mb MB"; exit 1; }
if "$source/scripts/gpu-bundle" --from "$build" "$bundle" 2>/dev/null; then
  echo "a folder that is not empty was taken"
  exit 1
fi

cd /
env -i "$bundle/bin/pkcomm-info" --json >"$work/info"
grep -q '"used": false' "$work/info"
env -i "$bundle/bin/pkcomm-perf" all_reduce -g 2 -b 8 -e 1K -f 4 -n 2 --platform host >"$work/sweep"
grep -qE '^ +512 ' "$work/sweep"
env -i "$bundle/bin/pkcomm-conformance" '[conformance][barrier]' >/dev/null
# A case that runs a program: the one of the bundle.
env -i PATH="$PATH" "$bundle/bin/pkcomm-integration" 'the table has the 13 columns of nccl-tests first' >/dev/null

if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo "there are GPUs: the runner is for people to start"
  exit 0
fi
status=0
env -i PATH="$PATH" "$bundle/run-gpu-tests" "$work/out" >"$work/run" || status=$?
[ "$status" = 77 ] || { echo "the runner ended with $status instead of 77"; cat "$work/run"; exit 1; }
grep -qE '^safety +1 +0 +0 ' "$work/out/summary.txt"
grep -q 'no GPU' "$work/out/summary.txt"
status=0
env -i PATH="$PATH" "$bundle/run-gpu-tests" --only nonsense "$work/out" 2>/dev/null || status=$?
[ "$status" = 2 ] || { echo "an unknown part ended with $status instead of 2"; exit 1; }
