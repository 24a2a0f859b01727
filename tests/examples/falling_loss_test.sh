#!/bin/bash
# falling_loss_test.sh LIMIT PROGRAM [ARGUMENT…]: PROGRAM succeeds, and the last "loss X" that it
# prints is below LIMIT and below the first.
set -eu
limit=$1
shift
"$@" | tee "$TEST_TMPDIR/out"
awk -v limit="$limit" '
  match($0, /loss [0-9.]+/) { last = substr($0, RSTART + 5, RLENGTH - 5); if (n++ == 0) first = last }
  END {
    if (n < 2) { print "no losses were printed"; exit 1 }
    if (last + 0 >= limit + 0 || last + 0 >= first + 0) {
      print "the loss went from", first, "to", last, "and should be below", limit
      exit 1
    }
  }' "$TEST_TMPDIR/out"
