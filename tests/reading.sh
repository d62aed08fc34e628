#!/usr/bin/env bash
# Runs the code of experiments/reading.md, block by block and in its order, on a small run and a small ablation. A block whose program or
# package is not there is left out by name. --need: then fail instead.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
root=$PWD
page=$root/experiments/reading.md
heed=${HEED:-$root/build/release/heed}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Each block into a file NUMBER-LINE.LANGUAGE; commands of heed, which are indented, into NUMBER-LINE.heed.
awk -v out="$folder" '
  /^```./ { language = substr($0, 4); file = sprintf("%s/%03d-%d.%s", out, ++blocks, NR + 1, language); printf "" > file; next }
  /^```/ { language = ""; next }
  language { print > file; next }
  /^    \.\/heed / { print substr($0, 5) > sprintf("%s/%03d-%d.heed", out, ++blocks, NR) }
' "$page"

# Which Python has all that a block imports; nothing: none.
python_for() {
  local modules
  modules=$(sed -nE 's/^(import|from) ([A-Za-z0-9_]+).*/\2/p' "$1" | sort -u | paste -sd ,)
  for python in python3 /usr/bin/python3; do
    if command -v "$python" > /dev/null && "$python" -c "import $modules" 2> /dev/null; then
      echo "$python"
      return
    fi
  done
}

left_out=0
run_block() {
  local block=$1 tool package
  case $block in
    *.heed)
      mapfile -t words < <(sed 's|^./heed||' "$block" | xargs -n 1 | sed "s|^configs/|$root/configs/|")  # xargs: quotes as a shell has them
      words=("$heed" "${words[@]}")
      if [[ ${words[1]} == run ]]; then words+=(train.steps=40 train.evaluate.every=20 train.evaluate.batches=4); fi
      if [[ ${words[2]} == */ablations/* ]]; then words+=(seeds=3); fi
      "${words[@]}" --quiet
      ;;
    *.python)
      tool=$(python_for "$block")
      if [[ -z $tool ]]; then return 77; fi
      MPLBACKEND=agg "$tool" "$block"
      ;;
    *.r)
      if ! command -v Rscript > /dev/null; then return 77; fi
      for package in $(sed -nE 's/^library\((.*)\)/\1/p' "$block"); do
        Rscript -e "quit(status = !requireNamespace('$package', quietly = TRUE))" 2> /dev/null || return 77
      done
      Rscript "$block"
      ;;
    *.sh)
      tool=$(sed -nE '1s/^([A-Z_]+=[^ ]* )*([a-z]+).*/\2/p' "$block")
      if ! command -v "$tool" > /dev/null; then return 77; fi
      bash -e "$block"
      ;;
    *.tex)
      if ! command -v pdflatex > /dev/null; then return 77; fi
      pdflatex -halt-on-error -interaction=nonstopmode "$block"
      ;;
    *)
      echo "no program is known for it"
      return 1
      ;;
  esac
}

cd "$folder"
for block in [0-9]*-*.*; do
  place=experiments/reading.md:$(sed -E 's/^[0-9]+-([0-9]+)\..*/\1/' <<< "$block")
  code=0
  (set -e; run_block "$block") > said 2>&1 || code=$?
  case $code in
    0) echo "passed: $place (${block##*.})" ;;
    77)
      echo "left out: $place (${block##*.}): its program or a package is not installed"
      left_out=$((left_out + 1))
      ;;
    *)
      cat said
      echo "failed: $place (${block##*.})" >&2
      exit 1
      ;;
  esac
done
if [[ ${1-} == --need && $left_out != 0 ]]; then exit 1; fi
