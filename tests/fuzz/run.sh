#!/usr/bin/env bash
# Lets libFuzzer look for inputs that the readers do not survive, from the seeds of each: a crash, a leak, undefined behaviour, an exception
# that is none of heed's, more than a second or 2 GB for a small input. Prints a line a target.
#
#   tests/fuzz/run.sh [SECONDS] [TARGET…]         seconds a target (5), and which (all)
#
# What a target does not survive lies in build/fuzz/TARGET-…; build/sanitize/fuzz_TARGET FILE runs that alone. build/fuzz/corpus/TARGET keeps what
# was found worth keeping for the next time.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

seconds=5
if [[ ${1-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
known=$(cd tests/fuzz && for file in *.cpp; do echo "${file%.cpp}"; done)
targets=("$@")
if (($# == 0)); then mapfile -t targets <<< "$known"; fi
for target in "${targets[@]}"; do
  if ! grep -qxF -e "$target" <<< "$known"; then
    echo "tests/fuzz/run.sh: there is no target $target; there are $(xargs <<< "$known")" >&2
    exit 2
  fi
done

./heed -y build --preset sanitize
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1
# fuzz TARGET: prints its line, and below it what was found.
fuzz() {
  local log=build/fuzz/$1.log code=0 executions
  mkdir -p "build/fuzz/corpus/$1"
  "build/sanitize/fuzz_$1" -max_total_time="$seconds" -timeout=1 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$1-" "build/fuzz/corpus/$1" "tests/fuzz/seeds/$1" > "$log" 2>&1 || code=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  echo "$1: ${executions:-0} executions, $((code != 0)) findings"
  if ((code)); then
    grep -m1 -E '^(==[0-9]+==)? ?ERROR|runtime error|what\(\):|libFuzzer: ' "$log" | sed 's/^/  /' || true
    sed -n "s/.*Test unit written to /  /p" "$log"
    echo "  all of it: $log"
  fi
  return $((code != 0))
}
export -f fuzz
export seconds
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz "$1"' _ || exit 1
