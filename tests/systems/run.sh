#!/usr/bin/env bash
# heed on another Debian, from nothing: an empty root of it, this tree as a clean checkout in it, README's two commands as they stand.
#
#   tests/systems/run.sh [--system trixie|forky|bookworm]           README's first command and its second, whole
#   tests/systems/run.sh --quick [--system …]                       the program with warnings as errors and code for AVX2 (or any ARM), and the
#                                                                   suites of what another release has in other versions
#   tests/systems/run.sh SUITE… [--system …]                        these suites alone
#   tests/systems/run.sh --preset P [SUITE…] [--system …]           the suites of one of ./heed's presets, e.g. libcxx
#   tests/systems/run.sh [--system …] --python SCRIPT…              a Python script with that Debian's PyTorch, here and not on a copy
#
# Roots are kept in build/systems, compiled files in this system's ccache. HEED_GOLDEN and HEED_DATA are handed on. Needs root, for
# debootstrap and chroot; exit 77: here no root can be made, which is said.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

say() { echo "systems: $*" >&2; }
leave_out() { say "left out: $*" && exit 77; }

system=trixie
quick=
preset=
suites=()
python=()
arguments=("$@")
while (($#)); do
  case $1 in
    --system) system=${2-} && shift ;;
    --system=*) system=${1#*=} ;;
    --quick) quick=yes ;;
    --preset) preset=${2-} && shift ;;
    --preset=*) preset=${1#*=} ;;
    --python) python=("${@:2}") && break ;;
    -*) say "unknown option $1" && exit 2 ;;
    *) suites+=("$1") ;;
  esac
  shift || break # an option without its value: --system is refused below, --preset by ./heed
done
case $system in
  trixie | forky | bookworm) ;;
  *) say "unknown system $system; there are trixie, forky, bookworm" && exit 2 ;;
esac

if ((EUID != 0)); then leave_out "an empty $system is made and entered by root: sudo tests/systems/run.sh"; fi
if ! command -v apt-get > /dev/null; then leave_out "this is no Debian: its mirror is not known"; fi
if [[ ! ${HEED_SYSTEMS_UNSHARED-} ]]; then # what is mounted below is seen by this process and its children alone, and goes with them
  export HEED_SYSTEMS_UNSHARED=yes
  if ! unshare --mount true 2> /dev/null; then leave_out "this system lets nobody mount"; fi
  exec unshare --mount tests/systems/run.sh "${arguments[@]}"
fi

root=$PWD/build/systems/$system
cache=$(ccache --get-config cache_dir 2> /dev/null) || cache=$PWD/build/systems/ccache
mkdir -p "$cache" build/systems

# The machine's own mirror of Debian.
mirror() { apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' | sed -n 's/^Debian|Debian|//p' | sort -u | head -n 1; }

make_root() {
  local from script=/usr/share/debootstrap/scripts/$system log=$PWD/build/systems/$system.log
  if ! command -v debootstrap > /dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends debootstrap > /dev/null || leave_out "no debootstrap"
  fi
  from=$(mirror)
  if [[ ! $from ]]; then leave_out "apt's configuration names no mirror of Debian (or apt-get update was never run)"; fi
  if [[ ! -e $script ]]; then script=/usr/share/debootstrap/scripts/sid; fi # a release that is younger than debootstrap
  say "an empty $system"
  rm -rf "$root.new" && mkdir -p "$root.new"
  if ! debootstrap --variant=minbase "$system" "$root.new" "$from" "$script" > "$log" 2>&1; then
    tail -n 5 "$log" >&2
    leave_out "no $system could be made from the mirror; all of it: $log"
  fi
  echo 'Acquire::Check-Valid-Until "false";' > "$root.new/etc/apt/apt.conf.d/99mirror" # a mirror may keep the state of one day
  mv "$root.new" "$root"
}

# Mounts, and this tree's files (what git knows and what it does not ignore) as /heed.
furnish() {
  mkdir -p "$root/heed" "$root/ccache" "$root/golden" "$root/data"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind "$cache" "$root/ccache"
  if [[ ${HEED_GOLDEN-} ]]; then mount --bind "$HEED_GOLDEN" "$root/golden"; fi
  if [[ ${HEED_DATA-} ]]; then mount --bind "$HEED_DATA" "$root/data"; fi
  find "$root/heed" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  git ls-files -z --cached --others --exclude-standard --deduplicate | tar -c --null --files-from=- --ignore-failed-read | tar -x -C "$root/heed"
}

# inside COMMAND…: as a new user of that system would; says how long it took.
inside() {
  local began=$SECONDS code=0 variables=(HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin CCACHE_DIR=/ccache)
  if [[ ${HEED_GOLDEN-} ]]; then variables+=(HEED_GOLDEN=/golden); fi
  if [[ ${HEED_DATA-} ]]; then variables+=(HEED_DATA=/data); fi
  say "$system: $*"
  chroot "$root" env -i "${variables[@]}" sh -c 'cd /heed && exec "$@"' sh "$@" < /dev/null || code=$?
  say "$system: $*: exit $code, $((SECONDS - began)) s"
  return $code
}

# run_python SCRIPT…: with PyTorch at its best. Without libopenblas0 it multiplies by the reference BLAS, without /sys it does not know the
# processor, and without headers and a compiler it does not compile.
run_python() {
  local folder packages=(python3-torch libtorch-dev libopenblas0-openmp python3-dev g++)
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  for folder in /tmp "$PWD" ${HEED_DATA:+"$HEED_DATA"}; do
    mkdir -p "$root$folder" && mount --bind "$folder" "$root$folder"
  done
  if ! chroot "$root" dpkg --status "${packages[@]}" > /dev/null 2>&1; then
    say "$system: ${packages[*]}"
    chroot "$root" sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive exec apt-get -qq -y install --no-install-recommends "$@"' sh \
      "${packages[@]}" > /dev/null 2>> "build/systems/$system.log" || leave_out "no PyTorch for $system; why: build/systems/$system.log"
  fi
  exec chroot "$root" /usr/bin/python3 "$@"
}

if [[ ! -d $root ]]; then make_root; fi
if ((${#python[@]})); then run_python "${python[@]}"; fi
furnish
if ((${#suites[@]})) || [[ $preset ]]; then
  inside ./heed test ${preset:+--preset "$preset"} ${suites[@]+"${suites[@]}"}
elif [[ $quick ]]; then
  # The compiler: whatever computes. xtensor, xsimd and OpenBLAS; yaml-cpp; CLI11; fmt and utf8proc; Boost; nlohmann-json; gnuplot.
  suites="tensor;operations;products;xtensor;simd;attention_properties;golden;config;config_errors;command_line;list;text;statistics"
  suites+=";safetensors;report"
  inside ./heed build --preset avx2 -DHEED_WERROR=ON -DHEED_SUITES="$suites" heed
  inside ./heed test --all --preset avx2
else
  inside ./heed run configs/ablations/attention.yaml
  inside ./heed test
fi
