#!/usr/bin/env bash
# Tiny Shakespeare by one process, and by several of which one is killed at five random moments, each time with another number of them: the
# same rows (but for time and memory) and the same bytes. Wants HEED_DATA, mpirun, and a program built with MPI.
#   tests/cluster/mpi.sh [STEPS]
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
steps=${1:-40}
heed=$PWD/build/release/heed
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

arguments=(run configs/gpt/shakespeare.yaml name=run train.accumulate=4 "train.steps=$steps" train.checkpoint.every=2
  train.evaluate.every="$steps" train.evaluate.batches=1 --threads 1 --quiet)
trace() {
  (cd "$folder/$1/run" && sha256sum checkpoint.safetensors state-*.safetensors config.yaml &&
    sed -E 's/"(time|memory)\.[^,}]*[,}]//g' metrics.jsonl)
}

SECONDS=0
"$heed" "${arguments[@]}" --output "$folder/alone"
took=$SECONDS
echo "alone: $took s"
for size in 4 2 1 4 2; do
  mpirun --oversubscribe -n "$size" "$heed" "${arguments[@]}" --output "$folder/runs" 2> "$folder/errors" &
  mpirun=$!
  sleep "$((RANDOM % (took / 5 + 2) + 1)).$((RANDOM % 10))"
  children=()
  { read -ra children < "/proc/$mpirun/task/$mpirun/children"; } 2> /dev/null || true # the line has no end
  if ((${#children[@]})); then kill -9 "${children[RANDOM % ${#children[@]}]}" || true; fi
  wait "$mpirun" && echo "$size processes: finished before one was killed" || echo "$size processes: one was killed"
  said=$(grep -c '^heed: ' "$folder/errors" || true)
  if ((said > 1)); then
    cat "$folder/errors"
    exit 1
  fi
done
mpirun --oversubscribe -n 4 "$heed" "${arguments[@]}" --output "$folder/runs"
diff <(trace alone) <(trace runs) && echo "the same run"
