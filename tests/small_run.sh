# Sourced by the scripts that disturb runs: folders, a small run, and what has come out of one.

# new_folder NAME: in memory where there is a place for it, since fsync costs nothing there.
new_folder() { mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" "heed-$1-XXXXXX"; }

# small_run STEPS EVALUATE CHECKPOINT LOG: the configuration of a run of so many steps, which evaluates, saves and logs every so many.
small_run() {
  cat << END
name: run
data: {kind: recall, pairs: 1, keys: 2, values: 2, validation: 4}
model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 4}
train: {steps: $1, batch: 2, evaluate: {every: $2}, checkpoint: {every: $3}, log: {every: $4}}
END
}

# small_sweep: the ablation of it that several processes share, 24 trials.
small_sweep() {
  cat << 'END'
ablation: ablation
base: run.yaml
vary: {model.attention: [scaled, dot, additive, general]}
seeds: 6
END
}

# rows RUN: its metrics.jsonl, without what may differ between equal runs.
rows() { sed -E 's/,?"(time|memory)\.[^"]*":("[^"]*"|[^,}]*)//g' "$1/metrics.jsonl"; }

# trial_rows FOLDER: those of an ablation's trials, each below its name.
trial_rows() {
  for trial in "$1"/ablation/*-seed*/; do
    basename "$trial"
    rows "$trial"
  done
}

# trial_checkpoints FOLDER: the hash of each checkpoint of an ablation's trials, below its path.
trial_checkpoints() { (cd "$1/ablation" && sha256sum ./*-seed*/checkpoint.safetensors ./*-seed*/state-*.safetensors 2> /dev/null) || true; }

# table FOLDER: the ablation's results.csv, without what may differ between equal runs.
table() { grep -vE ',(time|memory)\.' "$1/ablation/results.csv"; }

# check_sweep NAME FOLDER ALONE FINISHED: holds a sweep by many processes against the one that a single process has made (ALONE), and against
# what the shim has written down of trials that ended (FINISHED). Calls `finding` for what is wrong.
check_sweep() {
  local twice count
  twice=$(grep -- '-seed' "$4" | sort | uniq -d)
  count=$(grep -- '-seed' "$4" | sort -u | wc -l)
  if [[ $twice ]]; then finding "$1: trained twice: $twice"; fi
  if ((count != 24)); then finding "$1: $count of 24 trials were trained by the processes of the sweep"; fi
  if ! cmp -s <(trial_rows "$3") <(trial_rows "$2"); then finding "$1: other results than one process's"; fi
  if ! cmp -s <(table "$3") <(table "$2"); then finding "$1: another table than one process's"; fi
  if ! cmp -s <(trial_checkpoints "$3") <(trial_checkpoints "$2"); then finding "$1: other checkpoints than one process's"; fi
}

findings=0
finding() {
  echo "finding: $*"
  findings=$((findings + 1))
}
