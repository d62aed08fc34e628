#!/usr/bin/env bash
# Tiny Shakespeare by one process, and by several of which one is killed at five random moments, each time with another number of them: the
# same rows (but for time and memory) and the same bytes. Wants HEED_DATA, mpirun, and a program built with MPI.
#   tests/cluster/mpi.sh [STEPS]
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
steps=${1:-40}
# shellcheck source=tests/small_run.sh
source tests/small_run.sh
heed=$PWD/build/release/heed
folder=$(new_folder mpi)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

arguments=(run configs/gpt/shakespeare.yaml name=run train.accumulate=4 "train.steps=$steps" train.checkpoint.every=2
  train.evaluate.every="$steps" train.evaluate.batches=1 --threads 1 --quiet)
trace() {
  (cd "$folder/$1/run" && sha256sum checkpoint.safetensors state-*.safetensors config.yaml && rows .)
}

SECONDS=0
"$heed" "${arguments[@]}" --output "$folder/alone"
echo "alone: $SECONDS s"
killed_at=0
for size in 4 2 1 4 2; do
  mpirun --oversubscribe -n "$size" "$heed" "${arguments[@]}" --output "$folder/runs" 2> "$folder/errors" &
  mpirun=$!
  killed_at=$((killed_at + 1 + RANDOM % (steps / 6)))
  until [[ $(wc -l 2> /dev/null < "$folder/runs/run/metrics.jsonl") -ge $killed_at ]]; do
    kill -0 "$mpirun"
    sleep 0.01
  done
  children=()
  { read -ra children < "/proc/$mpirun/task/$mpirun/children"; } 2> /dev/null || true # the line has no end
  if ((${#children[@]})); then kill -9 "${children[RANDOM % ${#children[@]}]}" || true; fi
  if wait "$mpirun"; then
    echo "$size processes: finished before one was killed"
    exit 1
  fi
  echo "$size processes: one was killed after $killed_at rows or more"
  said=$(grep -c '^heed: ' "$folder/errors" || true)
  if ((said > 1)); then
    cat "$folder/errors"
    exit 1
  fi
done
mpirun --oversubscribe -n 4 "$heed" "${arguments[@]}" --output "$folder/runs"
diff <(trace alone) <(trace runs) && echo "the same run"
