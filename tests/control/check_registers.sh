#!/bin/sh
# check_registers.sh LIBRARY
#
# heddle_access_passes runs with the program's values in the vector registers: it uses none of them and
# calls nobody who might.
set -u
code=$(objdump -d --no-show-raw-insn --disassemble=heddle_access_passes "$1") || exit 1
echo "$code" | grep -q '\<ret' || { echo "FAILED: heddle_access_passes is not in $1"; exit 1; }
if echo "$code" | grep -E '\<call|%[xyz]?mm[0-9]'; then
  echo "FAILED: heddle_access_passes does these"
  exit 1
fi
echo passed
