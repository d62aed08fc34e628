#!/usr/bin/env bash
# A process that trains a trial, or measures a study, is stopped just before a system call: the k-th open, write, rename, …, for every k. Another
# process, on another machine, takes it over and finishes it. Then the first one goes on, and must leave everything as the other has written it.
#
#   tests/cluster/stops.sh [--quick] [HEED [SHIM]]     default: build/release/heed and the shim beside it
#
# As on a network file system: flock() locks nothing, and a claim is given up when it is silent (here: for 1 second). --quick: the calls that
# replace files only, of a sweep that goes on and of a study. Exit code: 1 if there are findings.
set -euo pipefail

scenarios=(fresh resumed study) calls=(rename unlink fsync ftruncate link write open mkdir read mmap)
if [[ ${1-} == --quick ]]; then
  scenarios=(resumed study) calls=(rename unlink fsync ftruncate link)
  shift
fi
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
heed=$(readlink -f "${1:-$root/build/release/heed}")
shim=$(readlink -f "${2:-$(dirname "$heed")/libheed_faults.so}")
# shellcheck source=tests/small_run.sh
source "$root/tests/small_run.sh"
work=$(new_folder stops)
# Also what is stopped.
stop() {
  # shellcheck disable=SC2046
  kill -9 $(grep -ls "$work" /proc/[0-9]*/cmdline | cut -d / -f 3) 2> /dev/null || true
  rm -rf "$work"
}
trap stop EXIT
export heed shim work file

small_run 6 3 2 2 > "$work/run.yaml"
cat > "$work/ablation.yaml" << 'END'
ablation: ablation
base: run.yaml
vary: {model.attention: [scaled]}
seeds: 1
END
cat > "$work/study.yaml" << 'END'
name: ablation
study: {kind: softmax_scaling, d_k: [4, 8], keys: [2], scale: [rsqrt], distribution: [gaussian], precision: 0.5, layers: 0}
END

# train FOLDER HOST [FAULT]: one process of the sweep or study ($file), on a machine of that name. Nothing is drawn.
train() {
  local environment=(PATH=/nonexistent OMP_NUM_THREADS=1 HEED_CLAIM_LAPSES=1 HEED_HOST="$2" HEED_FLOCK=lies LD_PRELOAD="$shim")
  if [[ ${3-} ]]; then environment+=("HEED_FAULT=$3" "HEED_FAULT_COUNT=$1/.count"); fi
  exec env "${environment[@]}" "$heed" run "$work/$file" --output "$1" --jobs 1 --threads 1 --quiet > /dev/null 2>> "$1/said"
}

# What came out, without what may differ between equal runs.
result() {
  if [[ $file == ablation.yaml ]]; then
    trial_rows "$1"
    trial_checkpoints "$1"
  fi
  grep -vE ',(time|memory)\.' "$1/ablation/results.csv"
  grep -hs '"finished"' "$1"/ablation/{,*/}summary.json || true
  find "$1/ablation" -type f ! -name '.lock*' ! -name log.txt -printf '%P\n' | sort
}

# is_stopped PROCESS: it or one of its children stands still.
is_stopped() {
  local each stat
  for each in "$1" $(cat /proc/"$1"/task/*/children); do
    if read -r stat < "/proc/$each/stat" && [[ ${stat##*) } == T* ]]; then return 0; fi
  done
  return 1
}

# begin FOLDER CALL K: a process in the background that is stopped there, with its trial a group (`first`). Returns 1 if it came to its end.
begin() {
  set -m
  (train "$1" first "$2:$3:STOP") &
  first=$!
  set +m
  local look
  for ((look = 0; look < 1200; ++look)); do # for a minute
    if is_stopped "$first"; then return 0; fi
    if ! kill -0 "$first" 2> /dev/null; then return 1; fi
    sleep 0.05
  done
  kill -9 -- "-$first"
  return 1
}

# file_of SCENARIO, alone_of SCENARIO: the file that it runs, and what came out of it undisturbed.
file_of() { if [[ $1 == study ]]; then echo study.yaml; else echo ablation.yaml; fi; }
alone_of() { echo "$work/alone-$(file_of "$1").result"; }

# try SCENARIO CALL K: one stop of what goes on from the folder SCENARIO. A study whose folder was taken over may end with 2. Prints "held",
# "none" (the program makes fewer such calls) or what is wrong.
try() {
  local what="$1: $2 $3" folder code=0
  file=$(file_of "$1")
  folder=$(mktemp -d "$work/try-XXXXXX")
  cp -rp "$work/$1/." "$folder"
  if begin "$folder" "$2" "$3"; then
    if [[ $1 == study ]]; then sleep 1; fi # it does not wait for a process that was heard of a moment ago
    (train "$folder" second) || echo "$what: the second process ends with $?: $(tail -n 1 "$folder/said")"
    kill -CONT -- "-$first"
    wait "$first" || code=$?
    if ((code != 0)) && [[ $1 != study || $code != 2 ]]; then
      echo "$what: the first process ends with $code: $(tail -n 1 "$folder/said")"
    fi
    if ! diff <(result "$folder") "$(alone_of "$1")" > "$folder/difference"; then
      echo "$what: other results: $(head -c 300 "$folder/difference" | tr '\n' '|')"
    fi
    (train "$folder" third) || echo "$what: the next call ends with $?: $(tail -n 1 "$folder/said")"
    if ! cmp -s <(result "$folder") "$(alone_of "$1")"; then echo "$what: the next call comes to other results"; fi
    echo held
  else
    wait "$first" || echo "$what: not stopped, and ends with $?: $(tail -n 1 "$folder/said")"
    echo none
  fi
  rm -rf "$folder"
}
export -f train result begin try file_of alone_of rows trial_rows trial_checkpoints is_stopped

exec 2> /dev/null # the shell's word of each process that was killed

# What one process makes; and where the scenarios begin: with nothing, or with a trial that was killed half way.
for file in study.yaml ablation.yaml; do
  mkdir "$work/alone-$file"
  (train "$work/alone-$file" alone)
  result "$work/alone-$file" > "$work/alone-$file.result"
done
mkdir "$work/fresh" "$work/resumed" "$work/study"
begin "$work/resumed" rename 10
kill -9 -- "-$first"
wait "$first" || true
ls "$work"/resumed/ablation/*/checkpoint.safetensors > /dev/null

# Every k, as many as the undisturbed command makes.
cases() {
  local begun call k count
  for begun in "${scenarios[@]}"; do
    file=$(file_of "$begun")
    for call in "${calls[@]}"; do
      rm -rf "$work/count"
      cp -rp "$work/$begun" "$work/count"
      (train "$work/count" alone "$call:0")
      count=$(od -An -td8 "$work/count/.count" | tr -d ' ')
      for ((k = 1; k <= count; ++k)); do echo "$begun $call $k"; done
    done
  done
}

cases > "$work/cases"
# Most of them wait for a claim to lapse.
xargs -L 1 -P "$((8 * $(nproc)))" bash -c 'try "$@"' _ < "$work/cases" > "$work/results"
grep -vxE 'held|none' "$work/results" | sort || true
findings=$(grep -vcxE 'held|none' "$work/results" || true)
echo "stops $(grep -cx held "$work/results"); findings $findings"
((findings == 0))
