#!/usr/bin/env bash
# Lets system calls fail, one at a time, under runs and ablations, fresh and resumed: the k-th open, read, write, …, for every k.
#
#   tests/faults/run.sh [--quick] [HEED [SHIM]]     default: build/release/heed and the shim beside it
#   tests/faults/run.sh --files [--quick] [HEED]    what finished runs and ablations consist of is damaged instead: see files.sh
#
# A fault is survived if the command ends in time, with 0 and the right results or with 1, 2 (no locks) or 3 and one line that says why (an
# ablation: 4 if a trial failed), and if the same command without faults then ends as one that was never disturbed: the same metrics.jsonl, but for
# time.* and memory.*. --quick: runs only, every call but malloc, and of the cases a third: with each commit the next. Exit code: 1 if there
# are findings.
set -euo pipefail

if [[ ${1-} == --files ]]; then exec "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/files.sh" "${@:2}"; fi
quick=
if [[ ${1-} == --quick ]]; then
  quick=1
  shift
fi
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
heed=$(readlink -f "${1:-$root/build/release/heed}")
shim=$(readlink -f "${2:-$(dirname "$heed")/libheed_faults.so}")
# shellcheck source=tests/small_run.sh
source "$root/tests/small_run.sh"
work=$(new_folder faults)
turn=$(($(git -C "$root" rev-list --count HEAD 2> /dev/null || echo 0) % 3))
trap 'rm -rf "$work"' EXIT
export heed shim work

small_run 6 3 2 2 > "$work/run.yaml"
cat > "$work/ablation.yaml" << 'END'
ablation: ablation
base: run.yaml
vary: {model.attention: [scaled, dot]}
tune: {grid: {train.optimizer.lr: [0.1, 0.01]}, seeds: 1}
seeds: 1
END

# run_heed FOLDER FILE [ARGUMENTS]: the command whose calls fail; variable `fault` says which. Nothing is drawn: gnuplot is not heed's
# code, and takes long.
run_heed() {
  local environment=(PATH=/nonexistent OMP_NUM_THREADS=1)
  if [[ ${fault-} ]]; then environment+=("HEED_FAULT=$fault" "HEED_FAULT_COUNT=$1/.count" "LD_PRELOAD=$shim"); fi
  timeout -k 1 20 env "${environment[@]}" "$heed" run "$work/$2" --output "$1" --threads 1 "${@:3}" > /dev/null
}

# What came out, without what may differ between equal runs: the rows of a run, the table of an ablation (whose folder may hold trials
# besides, of a choice that was made while a tuning trial had failed).
result() {
  if [[ -e $1/ablation ]]; then table "$1"; else rows "$1/run"; fi
}

# try SCENARIO CALL K ERROR: one fault. Prints "survived", "none" (the program makes fewer such calls) or what is wrong.
try() {
  local scenario=$1 call=$2 k=$3 error=$4 code=0 folder said
  local file=${scenario#* }
  folder=$(mktemp -d "$work/try-XXXXXX")
  cp -rp "$work/${scenario// /-}/." "$folder"
  fault=$call:$k:$error run_heed "$folder" "$file" 2> "$folder/.said" || code=$?
  local made
  made=$(od -An -td8 "$folder/.count" 2> /dev/null | tr -d ' ' || true)
  if ((${made:-0} < k)); then
    echo none
    rm -rf "$folder"
    return
  fi
  said=$(grep -vE 'is not installed|^step | s\)$' "$folder/.said" | head -c 300 | tr '\n' '|' || true)
  local what="$scenario: $call $k $error: exit $code"
  case $code in
    0) ;;
    1 | 2 | 3 | 4)
      if [[ $code == 4 && $file == run.yaml || $code == 2 && $error != ENOLCK ]]; then
        echo "$what: $said"
      elif [[ $said != *"heed: "* && $said != *"ibgomp: "* && $said != *" failed: "* ]] || [[ $said == *"terminate called"* ]]; then
        echo "$what, but does not say why: $said"
      elif [[ $file == run.yaml && $said == *"|"*"|"* ]]; then
        echo "$what in more than one line: $said"
      fi
      ;;
    124 | 137) echo "$what: it hangs" ;;
    *) echo "$what: it crashes: $said" ;;
  esac
  if ((code == 0)) && ! diff -q <(result "$folder") "$work/${file%.yaml}.rows" > /dev/null; then
    echo "$what: other results: $said"
  fi
  code=0
  said=$(run_heed "$folder" "$file" 2>&1 || exit $?) || code=$?
  if ((code != 0)); then
    echo "$what: the next call ends with $code: $(head -c 300 <<< "$said")"
  elif ! diff -q <(result "$folder") "$work/${file%.yaml}.rows" > /dev/null; then
    echo "$what: the next call comes to other results"
  fi
  echo survived
  rm -rf "$folder"
}
export -f run_heed rows table result try

# Where the scenarios begin: with nothing, and with a run of half the steps (an ablation: with one trial of them).
scenarios=("fresh run.yaml" "resumed run.yaml")
if [[ ! $quick ]]; then scenarios+=("fresh ablation.yaml" "resumed ablation.yaml"); fi
for scenario in "${scenarios[@]}"; do
  file=${scenario#* } start=$work/${scenario// /-}
  mkdir -p "$start"
  if [[ $scenario == resumed* ]]; then
    if [[ $file == run.yaml ]]; then
      run_heed "$start" run.yaml train.steps=4 2> /dev/null
    else
      run_heed "$start" ablation.yaml 2> /dev/null
      rm "$start"/ablation/tune-scaled-0.1-*/summary.json "$start"/ablation/scaled-seed1-*/{summary.json,checkpoint.safetensors}
    fi
  fi
  mkdir -p "$work/whole-$file"
  run_heed "$work/whole-$file" "$file" 2> /dev/null
  result "$work/whole-$file" > "$work/${file%.yaml}.rows"
done

# Every k, as many as the undisturbed command makes; of malloc, which comes by the ten thousand, some.
cases() {
  local scenario call error count k step
  for scenario in "${scenarios[@]}"; do
    for call in open:EACCES read:EIO write:ENOSPC fsync:EIO rename:EIO mmap:ENOMEM ftruncate:EIO flock:EIO flock:ENOLCK unlink:EIO mkdir:ENOSPC \
      fork:ENOMEM malloc:ENOMEM; do
      error=${call#*:} call=${call%:*}
      if [[ $quick && $call == malloc ]]; then continue; fi
      rm -rf "$work/counting"
      cp -rp "$work/${scenario// /-}" "$work/counting"
      fault=$call:0 run_heed "$work/counting" "${scenario#* }" 2> /dev/null
      count=$(od -An -td8 "$work/counting/.count" | tr -d ' ')
      step=1
      if [[ $call == malloc ]]; then step=$((count / 200 + 1)); fi
      for ((k = 1; k <= count; k += step)); do
        if [[ ! $quick ]] || ((k % 3 == turn)); then printf '%s\0%s\0%s\0%s\0' "$scenario" "$call" "$k" "$error"; fi
      done
    done
  done
}

cases > "$work/cases"
xargs -0 -n 4 -P "$(nproc)" bash -c 'try "$@"' _ < "$work/cases" > "$work/results"
grep -vxE 'survived|none' "$work/results" | sort || true
findings=$(grep -vcxE 'survived|none' "$work/results" || true)
injected=$(grep -cx survived "$work/results" || true)
echo "faults injected $injected, survived $((injected - findings)); findings $findings"
((findings == 0))
