#!/usr/bin/env bash
# Damages the files of a finished run and of a finished ablation, one at a time, and calls heed again.
#
#   tests/faults/run.sh --files [--quick] [HEED]       default: build/release/heed
#
# Every file that is there has one bit of a byte flipped, is cut at a line (a binary one at half), emptied, removed, and taken from a
# sister: a run with files of the same names, but another seed or arm. Its time stays. Then, each on a copy of its own: `report`,
# `compare`, `evaluate`, `run` and, as `longer`, `run` with more steps or seeds. Allowed are
#   s  the same result: what is printed, the page, the files that the command answers for, but for times, memory and the page's hash,
#   r  a refusal: exit 1 to 4, and a line that names the file or says what is wrong,
#   n  another result beside a line, on the terminal or in the page, that does so,
#   k  the same result, while the damaged file, of which this command makes no use, is kept as it is.
# A finding is
#   F  another result without a word, a crash, a hang, a refusal that names another file or promises what does not come.
# --quick: few places, lines and sisters, no trial of the tuning, and each damage for one or two of the commands: with each commit the next
# ones. Exit code: 1 if there are findings.
set -euo pipefail

quick=
if [[ ${1-} == --quick ]]; then quick=1 && shift; fi
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
heed=$(readlink -f "${1:-$root/build/release/heed}")
# shellcheck source=tests/small_run.sh
source "$root/tests/small_run.sh"
work=$(new_folder files)
trap 'rm -rf "$work"' EXIT
export heed work LC_ALL=C.UTF-8

for ((i = 1; i <= 40; ++i)); do echo "the dog $i saw a cat $((i * 7 % 13)) and ran"; done > "$work/text.txt"
cat > "$work/run.yaml" << 'END'
name: run
data: {kind: text, path: text.txt, tokenizer: char, validation: 0.2}
model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 8, position: rotary}
train: {steps: 6, batch: 2, optimizer: {lr: 0.03}, evaluate: {every: 3, lengths: [12]}, checkpoint: {every: 2}, log: {every: 2}}
probes: {every: 3, attention: [entropy], maps: {examples: 1, every: 6}}
END
cat > "$work/ablation.yaml" << 'END'
ablation: ablation
base: run.yaml
vary: {model.attention: [scaled, dot]}
tune: {grid: {train.optimizer.lr: [0.1, 0.01]}, seeds: 1}
seeds: 2
END

# bare ARGUMENTS: heed in the folder that holds the run or the ablation. Nothing is drawn: gnuplot takes long, and no command reads figures.
bare() { OMP_NUM_THREADS=1 timeout -k 1 20 env PATH=/nonexistent "$heed" "$@" --output . --threads 1; }

call() { # COMMAND SCENARIO FILE
  case $1-$2 in
    report-*) bare report "$2" ;;
    compare-run) bare compare run "$work/sister-seed/run" ;;
    compare-ablation) bare compare ablation ;;
    evaluate-run) bare evaluate run ;;
    evaluate-ablation) bare evaluate "ablation/${3%%/*}" ;;
    run-*) bare run "$work/$2.yaml" ;;
    longer-run) bare run "$work/run.yaml" train.steps=8 ;;
    longer-ablation) bare run "$work/ablation.yaml" seeds=3 ;;
  esac
}

# answers COMMAND SCENARIO FILE: the files that the command answers for. A page is made by `report` alone, an evaluation by `evaluate`; a
# state is only read to go on from it, and what a trial has printed is no result.
answers() {
  case $1-$2 in
    report-run) echo run/report.html ;;
    report-ablation) find ablation -maxdepth 1 -type f ! -name '.*' ! -name ablation.yaml ;;
    evaluate-*) find "$2" -path '*/evaluation-*' -type f ;;
    run-* | longer-*) find "$2" -type f ! -name '.*' ! -name report.html ! -path '*/figures/*' ! -path '*/evaluation-*' ! -name log.txt \
      ! -name 'state-*' ;;
  esac 2> /dev/null | sort
}

# shown COMMAND SCENARIO FILE: all of that as text, without what may differ between equal results. What nobody reads is behind "| ".
shown() {
  local text=() binary=() file
  if [[ $1-$2 != run-run && $1-$2 != longer-run ]]; then text=(.out); fi # a run prints what it has trained now
  while read -r file; do
    if [[ $file =~ \.(npz|safetensors|pdf)$ ]]; then binary+=("$file"); else text+=("$file"); fi
  done < <(answers "$@")
  awk '
    FNR == 1 { print "== " FILENAME; page = FILENAME ~ /\.html$/; body = 0 }
    page && /^<(body|script)>/ { body = /body/ }
    page && !body || FILENAME ~ /\/results\.csv$/ && /,(time|memory)\./ { next }
    /^ *"((time|memory)\.[a-z_]*|file_sha256|(metrics|results|summary)\.[a-z]*)": / { next } # hashes of what holds times
    { gsub(/,?"(time|memory)\.[^"]*":("[^"]*"|[^,}]*)/, "")
      gsub(/ data-results="[^"]*"/, "")
      gsub(/data-column="(seconds a run|tokens a second|peak memory \(MB\))">[^<]*/, "")
      gsub(/ \| [0-9.]+ \| [0-9]+ \| [0-9.]+ \| lr/, " | lr")          # of summary.md: seconds, tokens a second, memory
      gsub(/ +[0-9.]+ +[0-9]+ +[0-9.]+ +lr/, " lr")                    # of the same table on the terminal
      gsub(/  +/, "  ")
      print (page || FILENAME ~ /^\.out$|\.md$/ ? "" : "| ") $0 }' ${text[@]+"${text[@]}"} /dev/null
  if ((${#binary[@]})); then cksum "${binary[@]}" | awk '{ print "== " $3; print "| " $0 }'; fi
}

# without FILE SHOWN: what was shown of all other files.
without() { awk -v of="== $1" '/^== / { of_it = $0 == of } !of_it' "$2"; }

# damage FILE KIND WHERE: in its place, its time kept.
damage() {
  touch -r "$1" .time
  case $2 in
    flip)
      local byte
      byte=$(od -An -tu1 -j "${3%.*}" -N 1 "$1")
      printf '%b' "\\x$(printf %02x $((byte ^ (1 << ${3#*.}))))" | dd of="$1" bs=1 seek="${3%.*}" conv=notrunc status=none
      ;;
    half) truncate -s "$3" "$1" ;;
    cut) sed -i "$3q" "$1" ;;
    emptied) : > "$1" ;;
    removed) rm "$1" && return ;;
    sister) cp "$3" "$1" ;;
  esac
  touch -r .time "$1"
}

# What a line says that tells of damage without naming the file.
export words='missing|lacks|cannot be|damaged|does not|do not|is not|are not|was not|were not|differs from|changed|failed|incomplete|anew'

# try SCENARIO FILE KIND WHERE COMMAND: one case. Prints its outcome and what tells of it.
try() {
  local scenario=$1 file=$2 kind=$3 where=$4 command=$5 code=0 outcome said named base=${2##*/} trial=$2
  local reference=$work/shown/$1-$5 folder=$work/try-$BASHPID/here
  if [[ $scenario == ablation ]]; then trial=${2%%/*}; fi
  if [[ $command-$scenario == evaluate-ablation ]]; then reference+=-$trial; fi
  mkdir "${folder%/here}" && cp -rp "$work/$scenario" "$folder" && cd "$folder"
  if [[ $kind != none ]]; then damage "$scenario/$file" "$kind" "$where"; fi
  call "$command" "$scenario" "$file" > .out 2> .err || code=$?
  # What was said that a call on undamaged files does not say; progress is nothing.
  said=$(grep -avxF -f "$reference.err" .err | grep -avE '^step |: [0-9]+/[0-9]+ runs|^$' | head -n 20 || true)
  case $code in
    0)
      outcome=same
      shown "$command" "$scenario" "$file" > .shown
      if ! cmp -s .shown "$reference"; then
        said+=$'\n'$(grep -avxF -f "$reference" .shown | grep -av '^== ' | tr -d '\0' || true)
        if named=$(grep -avE '^\| |seeds? cannot' <<< "$said" | grep -aE -m 1 "$words|${base//./\\.}|(heed|arning):.*$trial"); then
          outcome=named said=$named
        elif cmp -s <(without "$scenario/$file" .shown) <(without "$scenario/$file" "$reference"); then
          outcome=kept said="exit 0, and the file stays as it is"
        else
          outcome=FINDING said="exit 0, another result: $(grep -a -m 1 . <<< "$said" || diff "$reference" .shown | sed -n 2p)"
        fi
      fi
      ;;
    1 | 2 | 3 | 4)
      outcome=refused
      if [[ $said != *"heed: "* && $said != *" failed: "* || $said == *"terminate called"* || $said == *exception* ]]; then
        outcome=FINDING said="exit $code, and does not say why: $said"
      elif [[ $scenario == run && $said == *$'\n'* ]]; then
        outcome=FINDING said="exit $code in more than one line: $said"
      elif [[ $said != *"$base"* ]] && grep -qaE '(\.yaml|\.jsonl?|\.csv|\.safetensors): (no such|cannot be)' <<< "$said"; then
        outcome=FINDING said="exit $code, and names another file: $said"
      elif [[ $said == *"tries again"* ]] && ! call "$command" "$scenario" "$file" > .out 2> .err; then
        outcome=FINDING said="exit $code, and the next call does not try again: $said"
      fi
      ;;
    124 | 137) outcome=FINDING said="it hangs" ;;
    *) outcome=FINDING said="exit $code, it crashes: $said" ;;
  esac
  cd "$work" && rm -rf "${folder%/here}"
  said=$(printf %s "${said//${folder#/}\//}" | tr '\n\t\r' '|  ' | cut -c 1-240)
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$outcome" "$scenario" "$file" "$kind" "${where//$work\//}" "$command" "$said"
}
export -f bare call answers shown without damage try

make() { mkdir -p "$work/$1" && (cd "$work/$1" && shift && bare "$@" --quiet 2> "$work/said") || { cat "$work/said" && exit 1; }; }
for each in run: sister-seed:seed=2 sister-arm:model.attention=dot; do
  make "${each%%:*}" run "$work/run.yaml" ${each#*:}
  make "${each%%:*}" evaluate run
done
make ablation run "$work/ablation.yaml"
make sister-seed run "$work/ablation.yaml" 'seeds=[3, 4]'
make sister-arm run "$work/ablation.yaml" 'vary={model.attention: [scaled, additive]}'
# Of trials, one of the comparison is swept and one of the tuning; their sisters are other trials.
cd "$work/ablation/ablation"
trials=(dot-seed1-* tune-dot-0.01-*)
declare -A others=([dot-seed]='dot-seed2-*' [dot-arm]='scaled-seed1-*' [tune-seed]='tune-dot-0.1-*' [tune-arm]='tune-scaled-0.01-*')
for trial in "${trials[@]}"; do make ablation evaluate "ablation/$trial"; done

# What undamaged ones give.
mkdir "$work/shown" "$work/try"
for each in {report,compare,evaluate,run,longer}-run {report,compare,run,longer}-ablation evaluate-ablation-{0,1}; do
  IFS=- read -r command scenario number <<< "$each"
  trial=${number:+${trials[$number]}} reference=$work/shown/$scenario-$command${number:+-${trials[$number]}}
  rm -rf "$work/try/here" && cp -rp "$work/$scenario" "$work/try/here" && cd "$work/try/here"
  call "$command" "$scenario" "$trial/" > .out 2> "$reference.err"
  shown "$command" "$scenario" "$trial/" > "$reference"
done

damages() { # SCENARIO FILE: kinds and places, a line each
  local path=$work/$1/$1/$2 size lines i place each sister
  size=$(stat -c %s "$path")
  echo "removed -"
  ((size)) && echo "emptied -" || return 0
  local places=($((size / 2)))
  if [[ ! $quick ]]; then
    places+=(0 $((size - 1)))
    for ((i = 1; i <= 8; ++i)); do places+=($(((i * 2654435761 + 40503) % size))); done
  fi
  for i in "${!places[@]}"; do echo "flip ${places[i]}.$((i * 5 % 8))"; done
  lines=$(wc -l < "$path")
  if ((lines < 2)) || ! grep -qI . "$path"; then echo "half $((size / 2))"; else
    for place in $((lines / 2)) $([[ $quick ]] || echo 1 $((lines - 1))); do echo "cut $place"; done | sort -u
  fi
  for each in seed $([[ $quick ]] || echo arm); do
    sister=$work/sister-$each/$1/$2
    if [[ $2 == *-seed*/* ]]; then sister=$(compgen -G "$work/ablation/ablation/${others[${2%%-*}-$each]}/${2#*/}" || true); fi
    if [[ -f $sister ]] && ! cmp -s "$sister" "$path"; then echo "sister $sister"; fi
  done
}

cases() {
  local scenario file kind where command turn
  turn=$(git -C "$root" rev-list --count HEAD 2> /dev/null || echo 0)
  for scenario in run ablation; do
    cd "$work/$scenario/$scenario"
    {
      find . -type f ! -path './*-seed*' -printf '%P\n'
      if [[ $scenario == ablation ]]; then find "${trials[@]:0:${quick:-2}}" -type f; fi
    } | while read -r file; do
      damages "$scenario" "$file" | sed "s|^|$file |"
    done | cat - <(echo "nothing none -") | while read -r file kind where; do # the last must be the same, or the sweep is wrong
      turn=$((turn + 2)) # the next damage begins with another command
      for command in report compare evaluate run longer; do
        turn=$((turn + 1))
        if [[ $command-$scenario == evaluate-ablation && $file != */* ]]; then continue; fi
        if [[ $quick && $kind != none ]] && ((turn % 3)); then continue; fi
        printf '%s\0' "$scenario" "$file" "$kind" "$where" "$command"
      done
    done
  done
}

cases > "$work/cases"
# shellcheck disable=SC2016
xargs -0 -n 60 -P "$(nproc)" bash -c 'while (($#)); do try "$1" "$2" "$3" "$4" "$5"; shift 5; done' _ < "$work/cases" > "$work/results"
if [[ ${HEED_SWEEP-} ]]; then cp "$work/results" "$HEED_SWEEP"; fi # every case with its outcome, to look at

sort -t $'\t' -k 2,4 "$work/results" | awk -F'\t' '
  { file = $3; sub(/-seed[0-9]+-[0-9a-f]+/, "", file); key = $2 "/" file ", " $4; letter = substr($1, 1, 1)
    if (!(key in seen)) { seen[key] = 1; keys[++count] = key }
    ++number[key, $6, letter]; ++all[letter] }
  END {
    commands = split("report compare evaluate run longer", command, " "); letters = split("s k r n F", letter_of, " ")
    for (k = 0; k <= count; ++k) {
      line = sprintf("%-56s", k ? keys[k] : "file, damage")
      for (c = 1; c <= commands; ++c) {
        cell = k ? "" : command[c]
        for (l = 1; l <= letters; ++l) if (n = number[keys[k], command[c], letter_of[l]]) cell = cell letter_of[l] n " "
        line = line sprintf(" %-12s", cell)
      }
      print line
    }
    printf "cases %d: same %d, of another file %d, refused %d, named %d; findings %d\n", NR, all["s"], all["k"], all["r"], all["n"], all["F"] }'
! sed -n 's/^FINDING\t//p' "$work/results" | sort | tr '\t' ' ' | grep .
