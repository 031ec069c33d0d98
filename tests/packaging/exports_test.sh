#!/usr/bin/env bash
# The library exports the C API and nothing else, and every function that the header declares. Usage: exports_test.sh
# LIBRARY HEADER
set -euo pipefail
library=$1 header=$2
exported=$(nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | sort -u)
declared=$(sed 's://.*::' "$header" | tr '\n' ' ' | sed 's:/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/: :g' |
  grep -oE 'PKCOMM_API [^;(]*\bpkcomm[A-Za-z0-9]+\(' | grep -oE 'pkcomm[A-Za-z0-9]+\($' | tr -d '(' | sort -u)
status=0
foreign=$(grep -v '^pkcomm' <<<"$exported" || true)
if [ -n "$foreign" ]; then
  printf 'exported, but not of the C API:\n%s\n' "$foreign"
  status=1
fi
missing=$(comm -13 <(printf '%s\n' "$exported") <(printf '%s\n' "$declared"))
if [ -n "$missing" ]; then
  printf 'declared, but not exported:\n%s\n' "$missing"
  status=1
fi
undeclared=$(comm -23 <(printf '%s\n' "$exported" | grep '^pkcomm' || true) <(printf '%s\n' "$declared"))
if [ -n "$undeclared" ]; then
  printf 'exported, but not declared:\n%s\n' "$undeclared"
  status=1
fi
echo "$(wc -l <<<"$exported") exported, $(wc -l <<<"$declared") declared"
exit $status
