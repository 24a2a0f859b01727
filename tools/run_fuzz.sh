#!/bin/sh
# run_fuzz.sh PROGRAM [SEED FILES] [-LIBFUZZER FLAGS]: fuzzes from a copy of the seeds.
program=$1
shift
corpus=${TEST_TMPDIR:?}/corpus
mkdir -p "$corpus"
for seed in "$@"; do
  case $seed in
    -*) break ;;
  esac
  cp "$seed" "$corpus/$(echo "$seed" | tr / _)"
  shift
done
exec "$program" -print_final_stats=1 -artifact_prefix="${TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}/" "$@" "$corpus"
