#!/usr/bin/env bash
# One name, one idea: fails with the locations of every struct, class and enum that is declared twice under one name anywhere in the
# program, nested and unnamed namespaces included; of every alias (using NAME = …) at namespace scope whose name also means a struct, class
# or enum, or an alias of something else; and of every free function and constant that several headers declare, outside of autograd's
# mathematics. Forward declarations and aliases in functions and classes do not count.
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
# Functions that are defined for several types: what they do is the same.
overloaded=' csv_of describe emit json_of name name_of take to_json to_string '
# A command is called as on the command line; draws and products of studies are theirs.
overloaded+='report sample draw multiply rows_of '
functions=$(git grep -nE '^[A-Za-z[]' -- autograd/'*'.hpp nn/'*'.hpp experiments/'*'.hpp |
  sed -nE -e 's/^([^:]+):([0-9]+):[^(=]*[ *&]([a-z][a-z0-9_]*)\(.*/\3\t\1\t\1:\2/p' \
    -e 's/^([^:]+):([0-9]+):(inline )?constexpr [^(=]*[ *&]([a-z][a-z0-9_]*)( = |\{).*/\4\t\1\t\1:\2/p' |
  awk -F '\t' -v overloaded="$overloaded" 'index(overloaded, " " $1 " ") == 0 { line[NR] = $0; name[NR] = $1; if ($2 !~ /^autograd/) outside[$1] }
    END { for (i = 1; i <= NR; i++) if (name[i] in outside) print line[i] }')
if [[ -z $functions ]]; then
  echo 'no function was found' >&2
  exit 1
fi
declarations=$(printf '%s\n' "$types" "$aliases" "$functions")
twice=$(cut -f 1,2 <<< "$declarations" | sort -u | cut -f 1 | uniq -d)
if [[ $twice ]]; then
  awk -F '\t' 'NR == FNR { twice[$1]; next } $1 in twice { print $1, $3 }' <(echo "$twice") <(echo "$declarations") | sort
  echo 'these names mean several things: name each after what it is' >&2
  exit 1
fi
