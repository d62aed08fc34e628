#!/usr/bin/env bash
# One name, one idea: fails with the places of every struct, class and enum that is declared twice under one name anywhere in the program,
# nested and unnamed namespaces included. Forward declarations do not count.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

declarations=$(git grep -nE '^ *(template <.*> )?(struct|class|enum class) [A-Za-z0-9]+( final)?( : [^;]*)?( \{.*)?$' -- \
  autograd/'*'.[ch]pp nn/'*'.[ch]pp experiments/'*'.[ch]pp |
  sed -E 's/^([^:]+:[0-9]+): *(template <.*> )?(struct|class|enum class) ([A-Za-z0-9]+).*/\4 \1/')
if [[ -z $declarations ]]; then
  echo 'no declaration was found' >&2
  exit 1
fi
twice=$(cut -d ' ' -f 1 <<< "$declarations" | sort | uniq -d)
if [[ $twice ]]; then
  awk 'NR == FNR { twice[$1]; next } $1 in twice' <(echo "$twice") <(echo "$declarations") | sort
  echo 'these names mean several things: name each after what it is' >&2
  exit 1
fi
