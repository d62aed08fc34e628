#!/usr/bin/env bash
# Twelve processes share an ablation's trials while they are killed, stopped and told to end at random: no trial is trained to its end twice,
# none is lost, and the results are those of one process, bit for bit. So are those of two shards that are killed, trained to their end and
# joined.
#
#   tests/cluster/sweep.sh [PROCESSES [SEED]]     default: 12 processes
#
# Exit code: 1 if there are findings.
set -euo pipefail

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
heed=$(readlink -f "$root/build/release/heed")
shim=$(readlink -f "$root/build/release/libheed_faults.so")
processes=${1:-12}
RANDOM=${2:-1}
# shellcheck source=tests/small_run.sh
source "$root/tests/small_run.sh"
work=$(new_folder sweep)
# What still runs, also what was stopped. Without any, kill and wait fail, which under -e would be this script's exit code.
stop() {
  # shellcheck disable=SC2046
  kill -CONT $(jobs -p) 2> /dev/null || true
  # shellcheck disable=SC2046
  kill -9 $(jobs -p) 2> /dev/null || true
  wait 2> /dev/null || true
  rm -rf "$work"
}
trap stop EXIT

small_run 6000 2000 200 50 > "$work/run.yaml"
small_sweep > "$work/ablation.yaml"
export PATH=/nonexistent:$PATH OMP_NUM_THREADS=1

# begin FOLDER [ARGUMENTS]: one process of the sweep, in the background.
begin() {
  HEED_FINISHED="$work/finished" LD_PRELOAD="$shim" \
    "$heed" run "$work/ablation.yaml" --output "$1" --jobs 1 --threads 1 --quiet "${@:2}" > /dev/null 2>> "$work/said" &
  running+=($!)
}

exec 2> /dev/null # the shell's word of each process that was killed
"$heed" run "$work/ablation.yaml" --output "$work/one" --threads 1 --quiet > /dev/null

# --- Processes that share a folder -------------------------------------------------------------------------------------------------------

running=() begun=$processes killed=0 stopped=0 ended=0
: > "$work/finished"
for ((i = 0; i < processes; ++i)); do begin "$work/shared"; done
for ((round = 0; round < 2000; ++round)); do
  sleep 0.05
  if (($(grep -c -- '-seed' "$work/finished" || true) >= 24)); then break; fi
  victim=$((RANDOM % ${#running[@]}))
  process=${running[victim]}
  if kill -0 "$process" 2> /dev/null; then
    case $((RANDOM % 6)) in
      0) kill -9 "$process" && killed=$((killed + 1)) ;;
      1) kill -TERM "$process" && ended=$((ended + 1)) ;;
      2) # it and the trial that it trains
        children=$(cat /proc/"$process"/task/*/children 2> /dev/null || true)
        # shellcheck disable=SC2086
        kill -STOP "$process" $children 2> /dev/null || true
        stopped=$((stopped + 1))
        # shellcheck disable=SC2086
        (sleep 2 && kill -CONT "$process" $children) 2> /dev/null &
        ;;
    esac
  fi
  if ! kill -0 "$process" 2> /dev/null; then
    unset "running[$victim]"
    running=("${running[@]}")
    begin "$work/shared"
    begun=$((begun + 1))
  fi
done
for process in "${running[@]}"; do
  code=0
  wait "$process" || code=$?
  case $code in
    0 | 130 | 137 | 143) ;;
    *) finding "a process ended with $code: $(tail -n 1 "$work/said")" ;;
  esac
done
wait
"$heed" run "$work/ablation.yaml" --output "$work/shared" --threads 1 --quiet > /dev/null 2>> "$work/said" ||
  finding "the last call fails: $(tail -n 1 "$work/said")"
check_sweep shared "$work/shared" "$work/one" "$work/finished"
echo "24 trials by $begun processes; killed $killed, stopped $stopped, told to end $ended"

# --- Two shards --------------------------------------------------------------------------------------------------------------------------

running=()
: > "$work/finished"
for shard in 0 1; do begin "$work/shard-$shard" --shard "$shard/2"; done
until (($(grep -c -- '-seed' "$work/finished" || true) >= 4)); do sleep 0.05; done
kill -9 "${running[@]}"
for shard in 0 1; do begin "$work/shard-$shard" --shard "$shard/2"; done
for process in "${running[@]:2}"; do wait "$process" || finding "a shard ended with $?: $(tail -n 1 "$work/said")"; done
"$heed" report "$work"/shard-* --output "$work/joined" --quiet 2>> "$work/said" || finding "no report: $(tail -n 1 "$work/said")"
check_sweep joined "$work/joined" "$work/one" "$work/finished"
echo "24 trials in two shards"
echo "findings $findings"
((findings == 0))
