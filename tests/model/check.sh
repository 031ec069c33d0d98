#!/usr/bin/env bash
# Searches the models of this folder with spin, as models.txt lists them, on one core. A model with its rules must hold
# over a complete search; with any one rule removed it must fail, and in the way that the list says.
#
#   check.sh FOLDER ci|nightly [MODEL]
#
# A line of output a search: verdict, model, what is expected, macros, states, seconds of processor time (compiling too).
# Exit status 0: all passed; 1: some failed; 2: called wrongly; 77: spin or gcc is not installed.
set -uo pipefail

case "$#:${2-}" in
  [23]:ci) search_seconds=600 memory_mib=5500 ;;
  [23]:nightly) search_seconds=3600 memory_mib=16000 ;;
  *) echo "usage: check.sh FOLDER ci|nightly [MODEL]" >&2; exit 2 ;;
esac
readonly build_seconds=120                   # of spin or gcc; some tenths on an idle machine
readonly depth=100000                        # steps; the deepest search has about a thousand
mode=$2 only=${3-}
folder=$(cd "$1" && pwd) || exit 2
for program in spin gcc; do
  if ! command -v "$program" >/dev/null; then
    echo "skipped: $program is not installed"
    exit 77
  fi
done
if [[ -n $only && ! -f $folder/$only.pml ]]; then
  echo "there is no model $only in $folder" >&2
  exit 2
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# report VERDICT(0: good) TEXT: counts it and prints a line.
report() {
  if [[ $1 == 0 ]]; then
    passed=$((passed + 1))
    echo "ok      $2"
  else
    failed=$((failed + 1))
    echo "FAILED  $2"
  fi
}

# search EXPECTED MODEL MACRO...: leaves the verifier's output in $work/out; true if it is as expected.
search() {
  local expected=$1 model=$2 macros=("${@:3}")
  local optimise=-O0 flags=()                # what fails fails soon; compiling would take longer than the search
  case $expected in
    holds) optimise=-O2 ;;
    assertion) flags=(-E) ;;
    deadlock) flags=(-A) ;;
    *) echo "models.txt: '$expected' is none of holds, assertion, deadlock" >"$work/out"; return 1 ;;
  esac
  rm -rf "$work/build"
  mkdir "$work/build" && cp "$folder"/*.pml "$work/build" && cd "$work/build" || return 1
  if ! timeout "$build_seconds" spin "${macros[@]/#/-D}" -a "$model.pml" >"$work/out" 2>&1 || [[ ! -f pan.c ]] ||
     ! timeout "$build_seconds" gcc "$optimise" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=1024 "-DMEMLIM=$memory_mib" \
       -o pan pan.c >>"$work/out" 2>&1; then
    return 1
  fi
  timeout "$search_seconds" ./pan "-m$depth" "${flags[@]}" >"$work/out" 2>&1
  local status=$?
  # pan itself ends with 0 or 1, whatever it found; anything else comes from outside, or is a fault of pan.
  case $status in
    0 | 1) ;;
    124) echo "the search took more than $search_seconds s" >>"$work/out" ;;
    *) echo "the search ended with status $status$( ((status > 128)) && echo ", signal $((status - 128))")" >>"$work/out" ;;
  esac
  case $expected in
    holds)
      [[ $status == 0 ]] && grep -q 'errors: 0$' "$work/out" && grep -q '^Full statespace search' "$work/out" &&
        ! grep -qE 'max search depth too small|Search not completed|out of memory|MEMLIM bound|truncated' "$work/out" ;;
    assertion) grep -q 'assertion violated' "$work/out" ;;
    deadlock) grep -q 'invalid end state (' "$work/out" ;;
  esac
}

# Each rule that a model names is removed by some line of the list.
check_rules() {
  local model=$1 rule missing=()
  for rule in $(grep -oE '\bNO_[A-Z_]+' "$folder/$model.pml" | sort -u); do
    grep -qE "^(assertion|deadlock) +ci +$model .*\b$rule( |$)" "$folder/models.txt" || missing+=("$rule")
  done
  local text="$model: every rule is removed once"
  [[ ${#missing[@]} == 0 ]] || text+="; not in models.txt: ${missing[*]}"
  report $((${#missing[@]} > 0)) "$text"
}

checked=" "
TIMEFORMAT='%U %S'
while read -r expected when model macros; do
  [[ -z $expected || $expected == \#* || $when != "$mode" ]] && continue
  [[ -n $only && $only != "$model" ]] && continue
  if [[ $mode == ci && $checked != *" $model "* ]]; then
    checked+="$model "
    check_rules "$model"
  fi
  # shellcheck disable=SC2086  # macros are words
  { time (search "$expected" "$model" $macros); } 2>"$work/time"
  verdict=$?
  took=$(tail -n 1 "$work/time" | awk '{printf "%.1f", $1 + $2}')
  states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$work/out" | head -n 1)
  report "$verdict" "$(printf '%-11s %-9s  %-46s %10s states %6s s' "$model" "$expected" "$macros" "${states:-no}" "$took")"
  [[ $verdict == 0 ]] || grep -vE '^Depth=' "$work/out" | head -n 40 | sed 's/^/        | /'
done <"$folder/models.txt"

if [[ $((passed + failed)) == 0 ]]; then
  echo "models.txt has no line for '$mode${only:+ $only}'"
  failed=1
fi
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
