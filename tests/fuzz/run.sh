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
findings=0
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target"
  log=build/fuzz/$target.log
  code=0
  "build/sanitize/fuzz_$target" -max_total_time="$seconds" -timeout=1 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$target-" "build/fuzz/corpus/$target" "tests/fuzz/seeds/$target" > "$log" 2>&1 || code=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  found=0
  if ((code != 0)); then found=1; fi
  findings=$((findings + found))
  echo "$target: ${executions:-0} executions, $found findings"
  if ((found)); then
    grep -m1 -E '^(==[0-9]+==)? ?ERROR|runtime error|what\(\):|libFuzzer: ' "$log" | sed 's/^/  /' || true
    sed -n "s/.*Test unit written to /  /p" "$log"
    echo "  all of it: $log"
  fi
done
exit $((findings > 0))
