#!/usr/bin/env bash
# One name, one idea: fails with the places of every struct, class and enum that is declared twice under one name anywhere in the program,
# nested and unnamed namespaces included, and of every alias (using NAME = …) at namespace scope whose name also means a struct, class or
# enum, or an alias of something else. Forward declarations and aliases in functions and classes do not count.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

sources=(autograd/'*'.[ch]pp nn/'*'.[ch]pp experiments/'*'.[ch]pp)
# Each line: NAME, a tab, the meaning (the place of a type, the right-hand side of an alias), a tab, the place.
types=$(git grep -nE '^ *(template <.*> )?(struct|class|enum class) [A-Za-z0-9]+( final)?( : [^;]*)?( \{.*)?$' -- "${sources[@]}" |
  sed -E 's/^([^:]+:[0-9]+): *(template <.*> )?(struct|class|enum class) ([A-Za-z0-9]+).*/\4\t\1\t\1/')
aliases=$(git grep -nE '^(template <.*> )?using [A-Za-z0-9]+ =' -- "${sources[@]}" |
  grep -vE 'using ([A-Za-z0-9]+) = ([A-Za-z0-9]+::)+\1;' | # another spelling of the same name
  sed -E 's/^([^:]+:[0-9]+):(template <.*> )?using ([A-Za-z0-9]+) = ?(.*)/\3\t\4\t\1/')
if [[ -z $types || -z $aliases ]]; then
  echo 'no declaration was found' >&2
  exit 1
fi
declarations=$(printf '%s\n' "$types" "$aliases")
twice=$(cut -f 1,2 <<< "$declarations" | sort -u | cut -f 1 | uniq -d)
if [[ $twice ]]; then
  awk -F '\t' 'NR == FNR { twice[$1]; next } $1 in twice { print $1, $3 }' <(echo "$twice") <(echo "$declarations") | sort
  echo 'these names mean several things: name each after what it is' >&2
  exit 1
fi
