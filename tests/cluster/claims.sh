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
work=$(mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" heed-claims-XXXXXX)
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

cat > "$work/run.yaml" << 'END'
name: run
data: {kind: recall, pairs: 1, keys: 2, values: 2, validation: 4}
model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 4}
train: {steps: 6000, batch: 2, evaluate: {every: 2000}, checkpoint: {every: 200}, log: {every: 50}}
END
cat > "$work/ablation.yaml" << 'END'
ablation: ablation
base: run.yaml
vary: {model.attention: [scaled, dot, additive, general]}
seeds: 6
END
export PATH=/nonexistent:$PATH OMP_NUM_THREADS=1 HEED_CLAIM_LAPSES=2

# begin FOLDER NAME: one process of the sweep, on a machine of that name.
begin() {
  local environment=(HEED_FINISHED="$work/finished" LD_PRELOAD="$shim")
  if [[ $mode == network ]]; then environment+=(HEED_HOST="$2" HEED_FLOCK="$([[ $2 == *[02468] ]] && echo lies || echo none)"); fi
  env "${environment[@]}" "$heed" run "$work/ablation.yaml" --output "$1" --jobs 1 --threads 1 --quiet > /dev/null 2>> "$work/said" &
  running+=($!)
}

# What came out of a trial: its rows, without what may differ between equal runs.
rows() {
  for trial in "$1"/ablation/*-seed*/; do
    echo "$(basename "$trial")"
    sed -E 's/,?"(time|memory)\.[^"]*":("[^"]*"|[^,}]*)//g' "$trial/metrics.jsonl"
  done
}

exec 2> /dev/null # the shell's word of each process that was killed
findings=0
finding() {
  echo "$mode: $*"
  findings=$((findings + 1))
}

"$heed" run "$work/ablation.yaml" --output "$work/one" --threads 1 --quiet > /dev/null
rows "$work/one" > "$work/one.rows"

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
      *) finding "a process ended with $code: $(tail -n 1 "$work/said")" ;;
    esac
  done
  wait
  "$heed" run "$work/ablation.yaml" --output "$folder" --threads 1 --quiet > /dev/null || finding "the last call fails"
  twice=$(grep -- '-seed' "$work/finished" | sort | uniq -d)
  count=$(grep -- '-seed' "$work/finished" | sort -u | wc -l)
  if [[ $twice ]]; then finding "trained twice: $twice"; fi
  if ((count != 24)); then finding "$count of 24 trials were trained by the processes of the sweep"; fi
  rows "$folder" > "$work/$mode.rows"
  cmp -s "$work/one.rows" "$work/$mode.rows" || finding "other results than one process's"
  left=$(find "$folder" -name '*.claim-*' | wc -l)
  echo "$mode: $count trials by $names processes; killed $killed, stopped $stopped, told to end $ended; claims left behind $left"
done
echo "findings $findings"
((findings == 0))
