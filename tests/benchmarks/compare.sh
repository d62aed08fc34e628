#!/usr/bin/env bash
# heed beside PyTorch on this machine: both sides alternate in one run, and what is printed are ratios of medians.
#
#   tests/benchmarks/compare.sh                       everything; more than an hour (35 minutes with --rounds 2 on two
#                                                     cores of a Zen 3). Nothing else should be running.
#   tests/benchmarks/compare.sh --sizes nano --threads 1 --rounds 1 --only train
#   tests/benchmarks/compare.sh --avx2                the same with both sides held to AVX2
#   tests/benchmarks/compare.sh --system forky        beside the PyTorch of another Debian: trixie, or forky, the newest; needs root
#
# What cannot be measured on a machine is left out of the tables, and said. HEED names another program than the one built here.
# PyTorch is Debian's python3-torch, by itself this system's; without it there is nothing to compare with. PYTHON names another interpreter.
# LLMC names a checkout of https://github.com/karpathy/llm.c, if there is one: heed's training step is then compared with its too.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
python=${PYTHON:-/usr/bin/python3}

export PYTORCH=$python # the command that runs PyTorch's side
messages=/dev/null
if [[ " $* " =~ " --system"[\ =]([a-z]+)" " ]]; then PYTORCH="$here/../systems/run.sh --system ${BASH_REMATCH[1]} --python" messages=/dev/stderr; fi
if ! $PYTORCH "$here/pytorch_gpt.py" tiny --what product > /dev/null 2> "$messages"; then
  echo "compare.sh: no torch by $PYTORCH, so there is nothing to compare with (Debian: apt-get install python3-torch)"
  exit 0
fi
if [[ ! ${HEED-} ]]; then
  preset=release
  if [[ " $* " == *" --avx2 "* ]]; then preset=avx2; fi
  "$here/../../heed" build --preset "$preset" > /dev/null
  export HEED=$here/../../build/$preset/heed
fi
exec "$python" "$here/compare.py" "$@"
