#!/bin/bash
# same_output_test.sh PROGRAM…: all succeed and print the same, the loss falling to a tenth.
set -eu
for program in "$@"; do
  "$program" > "$TEST_TMPDIR/out"
  if [ ! -e "$TEST_TMPDIR/first" ]; then
    cat "$TEST_TMPDIR/out"
    mv "$TEST_TMPDIR/out" "$TEST_TMPDIR/first"
  elif ! diff "$TEST_TMPDIR/first" "$TEST_TMPDIR/out"; then
    echo "$program (>) prints other lines than $1 (<)"
    exit 1
  fi
done
awk '{ last = $NF; if (NR == 1) first = $NF }
  END { if (NR < 10 || last * 10 > first) { print "the loss went from", first, "to", last; exit 1 } }
  ' "$TEST_TMPDIR/first"
