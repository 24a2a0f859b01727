#!/bin/sh
# mpi_failures_test.sh RUN_MPI PROGRAM: however one of three ranks fails, mpirun ends with an error
# within seconds, and the others say why.
run_mpi=$1
program=$2
status=0

# expect CASE TEXT...: the case fails with all of these texts, which are patterns for grep.
expect() {
  name=$1
  shift
  begin=$(date +%s)
  output=$(timeout 60 "$run_mpi" 3 "$program" "$name" 2>&1)
  result=$?
  seconds=$(($(date +%s) - begin))
  fault=
  [ $result -ne 0 ] || fault="it ended with status 0"
  [ $seconds -lt 15 ] || fault="it took $seconds s"
  for text in "$@"; do
    printf '%s\n' "$output" | grep -q "$text" || fault="nobody says: $text"
  done
  if [ -n "$fault" ]; then
    echo "$name: $fault"
    printf '%s\n' "$output"
    status=1
  fi
}

expect kill '^rank 0: .*rank 1 (process [0-9]*) is gone while .*exchange of blocks.3' \
  '^rank 2: .*rank 1 (process [0-9]*) is gone'
expect exit '^rank 0: .*rank 1 (process [0-9]*) is gone while .*exchange of blocks.3'
expect throw '^rank 1: no such file: data.bin' '^rank 0: .*rank 1: no such file: data.bin' \
  '^rank 2: .*rank 1: no such file: data.bin'
expect return '^rank 0: .*rank 1 has ended, and rank' '^rank 1: stopped at its end: .*has ended'
expect timeout '^rank 0: .*rank 1 has not come'
exit $status
