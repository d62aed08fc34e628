#!/usr/bin/env bash
# README's "Read in this order": prints each file with its lines and their sum, and fails if there are more than 3,000, a file is missing, a
# function has more than 60 lines, or README has other numbers. With --write it puts the numbers into README.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

most=3000
longest=60
total=0
wrong=0
while read -r path said; do
  lines=$(wc -l < "$path")
  total=$((total + lines))
  printf '%5d  %s\n' "$lines" "$path"
  long=$(awk -v most="$longest" '
    /^(  )?[A-Za-z].*[)a-z] \{$/ && !/^ *(namespace|class|struct|enum|extern)/ { match($0, /^ */); if (!start || RLENGTH <= depth) { start = NR; depth = RLENGTH } }
    /^(  )?\}/ { match($0, /^ */); if (start && RLENGTH == depth) { if (NR - start + 1 > most) print start ": " NR - start + 1 " lines"; start = 0 } }
  ' "$path")
  if [[ $long ]]; then
    echo "$path:$long are more than $longest of one function" >&2
    wrong=1
  fi
  if [[ $lines == "$said" ]]; then continue; fi
  if [[ ${1-} == --write ]]; then
    sed -i "s#^| \[\`$path\`\]($path) | [0-9]* |#| [\`$path\`]($path) | $lines |#" README.md
  else
    echo "README says $said lines of $path" >&2
    wrong=1
  fi
done < <(sed -n '/^## Read in this order/,/^## /p' README.md | sed -nE 's/^\| \[`([^`]+)`\]\([^)]*\) \| ([0-9]+) \|.*/\1 \2/p')
printf '%5d  in all\n' "$total"
if ((total == 0 || total > most)); then
  echo "that is not between 1 and $most" >&2
  wrong=1
fi
exit "$wrong"
