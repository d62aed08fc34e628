#!/usr/bin/env bash
# Many processes share an ablation's trials while they are killed, stopped and told to end at random: no trial is trained to its end twice,
# none is lost, and the results are those of one process, bit for bit.
#
#   tests/cluster/claims.sh [PROCESSES [SEED]]     default: 20 processes
#
# Twice: with locks as this machine has them, and as on a network file system: flock() locks nothing or fails, and every process is on a machine of
# its own, so that a claim is given up only when it is silent (here: for 2 seconds). Exit code: 1 if there are findings.
set -euo pipefail

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
heed=$(readlink -f "$root/build/release/heed")
shim=$(readlink -f "$root/build/release/libheed_faults.so")
processes=${1:-20}
RANDOM=${2:-1}
# shellcheck source=tests/small_run.sh
source "$root/tests/small_run.sh"
work=$(new_folder claims)
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
export PATH=/nonexistent:$PATH OMP_NUM_THREADS=1 HEED_CLAIM_LAPSES=2

# begin FOLDER NAME: one process of the sweep, on a machine of that name.
begin() {
  local environment=(HEED_FINISHED="$work/finished" LD_PRELOAD="$shim")
  if [[ $mode == network ]]; then environment+=(HEED_HOST="$2" HEED_FLOCK="$([[ $2 == *[02468] ]] && echo lies || echo none)"); fi
  env "${environment[@]}" "$heed" run "$work/ablation.yaml" --output "$1" --jobs 1 --threads 1 --quiet > /dev/null 2>> "$work/said" &
  running+=($!)
}

exec 2> /dev/null # the shell's word of each process that was killed
"$heed" run "$work/ablation.yaml" --output "$work/one" --threads 1 --quiet > /dev/null

for mode in local network; do
  folder=$work/$mode running=() names=0 killed=0 stopped=0 ended=0
  rm -f "$work/finished" "$work/said"
  : > "$work/finished"
  for ((i = 0; i < processes; ++i)); do begin "$folder" "node$((++names))"; done
  for ((round = 0; round < 2000; ++round)); do
    sleep 0.05
    if (($(grep -c -- '-seed' "$work/finished" || true) >= 24)); then break; fi
    victim=$((RANDOM % ${#running[@]}))
    process=${running[victim]}
    if kill -0 "$process" 2> /dev/null; then
      case $((RANDOM % 6)) in
        0) kill -9 "$process" && killed=$((killed + 1)) ;;
        1) kill -TERM "$process" && ended=$((ended + 1)) ;;
        2) # it and the trial that it trains, until after their claims have lapsed
          children=$(cat /proc/"$process"/task/*/children 2> /dev/null || true)
          # shellcheck disable=SC2086
          kill -STOP "$process" $children 2> /dev/null || true
          stopped=$((stopped + 1))
          # shellcheck disable=SC2086
          (sleep 4 && kill -CONT "$process" $children) 2> /dev/null &
          ;;
      esac
    fi
    if ! kill -0 "$process" 2> /dev/null; then
      unset "running[$victim]"
      running=("${running[@]}")
      begin "$folder" "node$((++names))"
    fi
  done
  for process in "${running[@]}"; do
    code=0
    wait "$process" || code=$?
    case $code in
      0 | 130 | 137 | 143) ;;
      *) finding "$mode: a process ended with $code: $(tail -n 1 "$work/said")" ;;
    esac
  done
  wait
  "$heed" run "$work/ablation.yaml" --output "$folder" --threads 1 --quiet > /dev/null 2>> "$work/said" ||
    finding "$mode: the last call fails: $(tail -n 1 "$work/said")"
  check_sweep "$mode" "$folder" "$work/one" "$work/finished"
  left=$(find "$folder" -name '*.claim-*' | wc -l)
  echo "$mode: 24 trials by $names processes; killed $killed, stopped $stopped, told to end $ended; claims left behind $left"
done
echo "findings $findings"
((findings == 0))
