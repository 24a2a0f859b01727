#!/bin/sh
# mpi_failures_test.sh PROGRAM RANKS_PER_HOST BAD LAUNCHER...: however rank BAD of four fails, mpirun
# ends with an error within seconds, and somebody says why.
program=$1
split=$2
bad=$3
shift 3
launcher="$*"
status=0

# expect CASE TEXT...: the case fails with all of these texts, which are patterns for grep.
expect() {
  name=$1
  shift
  begin=$(date +%s)
  output=$(timeout 60 $launcher "$program" "$name" "$split" "$bad" 2>&1)
  result=$?
  seconds=$(($(date +%s) - begin))
  fault=
  [ $result -ne 0 ] || fault="it ended with status 0"
  [ $result -ne 139 ] || fault="it crashed"
  [ $seconds -lt 15 ] || fault="it took $seconds s"
  for text in "$@"; do
    printf '%s\n' "$output" | grep -q "$text" || fault="nobody says: $text"
  done
  printf '%s\n' "$output" | grep -q "AddressSanitizer\|Segmentation" && fault="it crashed"
  # Where mpirun ends a whole host, its first rank may go before it passes on who went first.
  [ "$split" != 0 ] ||
    ! printf '%s\n' "$output" | grep "^rank .*is gone" | grep -v "^rank $bad:" | grep -v "$gone" | grep -q . ||
    fault="somebody names another rank"
  if [ -n "$fault" ]; then
    echo "$name: $fault"
    printf '%s\n' "$output"
    status=1
  fi
}

gone="rank $bad .*is gone"
# mpirun ends those of another host that is in touch with a rank that is gone, often before they
# speak; whoever speaks, mpirun at least, names the one that went first.
if [ "$split" = 0 ]; then
  gone_first="^rank [0-3]: .*of blocks.3: .*$gone"
else
  gone_first="^\\(host\\|rank\\) .*$gone\\|mpirun .*process rank $bad "
fi
expect kill "$gone_first"
expect exit "$gone_first"
# mpirun ends all once the first has ended with an error, and passes on what it has by then.
expect throw "^rank [0-3]: .*no such file: data.bin"
expect return "^rank [0-3]: .*rank $bad has ended, and rank"
expect timeout "^rank [0-3]: .*rank $bad has not come"
expect mismatch '^rank [0-3]: .*different calls: rank . exchange of blocks.. .*, rank . exchange of blocks'
expect busy-kill "$gone_first"
expect busy-stop '^rank [0-3]: .* of blocks.3: .*the user asked for it'
expect busy-stall '^rank [0-3]: .* of blocks.3: .*waited longer than timeout_s = 0.5'
exit $status
