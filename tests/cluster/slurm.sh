#!/usr/bin/env bash
# A sweep on a real Slurm: slurmctld and two slurmd on this machine. An ablation of 24 trials as an array of 4 tasks, of which one is killed
# with -9, one is queued again by scontrol requeue, and one node is drained; then the same trials in three shards, which are joined. Every
# trial is trained once, and the results are those of one process, bit for bit.
#
#   tests/cluster/slurm.sh          as root; of Debian: slurm-wlm munge
#
# Not in .ci/run: it starts services. Exit code: 1 if there are findings, 77 if a program is missing.
set -euo pipefail

for program in slurmctld slurmd munged sbatch; do
  if ! command -v "$program" > /dev/null; then
    echo "left out: there is no $program (apt-get install slurm-wlm munge)"
    exit 77
  fi
done
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
heed=$(readlink -f "$root/build/release/heed")
shim=$(readlink -f "$root/build/release/libheed_faults.so")
# shellcheck source=tests/small_run.sh
source "$root/tests/small_run.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/heed-slurm-XXXXXX")
chmod 755 "$work"
daemons=()
stop() {
  scancel --quiet --name=ablation 2> /dev/null || true
  for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do kill "${daemons[i]}" 2> /dev/null || true; done
  for ((i = 0; i < 50; ++i)); do
    if ! kill -0 "${daemons[@]}" 2> /dev/null; then break; fi
    sleep 0.1
  done
  for daemon in ${daemons[@]+"${daemons[@]}"}; do kill -9 "$daemon" 2> /dev/null || true; done
  rm -rf "$work"
}
trap stop EXIT

# --- The cluster ---------------------------------------------------------------------------------------------------------------------

mkdir -p "$work"/{state,spool1,spool2,munge,log}
chmod 700 "$work/munge"
dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 status=none
chmod 400 "$work/munge/key"
munged --force --foreground --key-file="$work/munge/key" --socket="$work/munge.socket" --pid-file="$work/munge/pid" \
  --log-file="$work/munge/log" --seed-file="$work/munge/seed" > "$work/log/munged" 2>&1 &
daemons+=($!)
cat > "$work/slurm.conf" << END
ClusterName=heed
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
SlurmctldPort=16817
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=10
MinJobAge=600
MpiDefault=none
NodeName=node1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16818 CPUs=2 RealMemory=4000
NodeName=node2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16819 CPUs=2 RealMemory=4000
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$work/slurm.conf
sleep 1
slurmctld -D -f "$work/slurm.conf" > "$work/log/slurmctld" 2>&1 &
daemons+=($!)
for node in node1 node2; do
  slurmd -D -N "$node" -f "$work/slurm.conf" > "$work/log/slurmd-$node" 2>&1 &
  daemons+=($!)
done
for ((i = 0; i < 100; ++i)); do
  if [[ $(sinfo --noheader -o '%T' 2> /dev/null) == idle ]]; then break; fi
  sleep 0.2
done
if [[ $(sinfo --noheader -o '%T') != idle ]]; then
  tail -n 5 "$work"/log/*
  exit 1
fi

# --- The sweep -----------------------------------------------------------------------------------------------------------------------

small_run 100000 10000 1000 500 > "$work/run.yaml"
small_sweep > "$work/ablation.yaml"
# judge NAME: the trials in a folder, and what the shim has written down.
judge() {
  check_sweep "$1" "$work/$1" "$work/one" "$work/finished-$1"
  "$heed" watch "$work/$1/ablation" --once | head -n 1
}
until_done() {
  for ((i = 0; i < 900; ++i)); do
    if [[ ! $(squeue --noheader) ]]; then return; fi
    if ((i % 60 == 59)); then in_state .; fi
    sleep 1
  done
  finding "jobs are left: $(squeue --noheader)"
}
in_state() { squeue --noheader --array -o '%i %T %R %N' | grep "$1" || true; }

cd "$work"
PATH=/nonexistent "$heed" run ablation.yaml --output one --threads 1 --quiet > /dev/null 2>&1
"$heed" plan ablation.yaml --output slurm --threads 1 --tasks 4 --slurm > job.sbatch
cat job.sbatch
: > finished-slurm
: > finished-joined
export HEED_FINISHED=$work/finished-slurm OMP_NUM_THREADS=1
LD_PRELOAD=$shim sbatch --export=ALL job.sbatch
done_so_far() { grep -c -- '-seed' "$HEED_FINISHED" 2> /dev/null || true; }
until (($(done_so_far) >= 3)); do sleep 0.2; done
tasks=$(in_state RUNNING | cut -d ' ' -f 1)
echo "running: $(echo "$tasks" | tr '\n' ' ')"
first=$(sed -n 1p <<< "$tasks") second=$(sed -n 2p <<< "$tasks")

victim=$({ for process in /proc/[0-9]*; do
  if tr '\0' '\n' 2> /dev/null < "$process/environ" | grep -qx "SLURM_ARRAY_TASK_ID=${first#*_}" && [[ $(readlink "$process/exe") == "$heed" ]]; then
    basename "$process"
  fi
done; } 2> /dev/null | sort -n | head -n 1)
echo "kill -9 of task $first: process $victim"
kill -9 "$victim"
until (($(done_so_far) >= 6)); do sleep 0.2; done
echo "scontrol requeue $second"
scontrol requeue "$second"
until (($(done_so_far) >= 9)); do sleep 0.2; done
echo "node2 is drained"
scontrol update NodeName=node2 State=DRAIN Reason=test
"$heed" watch "$work/slurm/ablation" --once
until_done
echo "slurm: interruptions $(cat slurm/ablation/*/interruptions.json 2> /dev/null | tr -d ' \n')"
tail -n 3 slurm-*.log
judge slurm

# --- Shards --------------------------------------------------------------------------------------------------------------------------

"$heed" plan ablation.yaml --output shards --threads 1 --shards 3 --slurm > shards.sbatch
export HEED_FINISHED=$work/finished-joined
LD_PRELOAD=$shim sbatch --export=ALL shards.sbatch
until (($(done_so_far) >= 3)); do sleep 0.2; done
scontrol requeue "$(in_state RUNNING | cut -d ' ' -f 1 | head -n 1)"
until_done
"$heed" report shards/shard-* --output joined --quiet
judge joined

echo "findings $findings"
((findings == 0))
