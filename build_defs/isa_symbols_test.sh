#!/bin/sh
# isa_symbols_test.sh ARCHIVE...: each libNAME_LEVEL.a was compiled for one instruction set.
# Fails if one exports anything but KERNEL::run<LEVEL> (an inline function or a template could replace
# another level's copy) or runs code before main (it would run on processors without these instructions).
status=0
checked=0
for archive in "$@"; do
  case $archive in *.a) ;; *) continue ;; esac
  isa=$(basename "$archive" .a)
  isa=${isa%.pic}
  isa=${isa##*_}
  case $isa in
    base) level=0 ;; avx2) level=1 ;; avx512) level=2 ;; avx512bf16) level=3 ;;
    *) echo "$archive is of no known level"; exit 1 ;;
  esac
  own="run<(sherd::Isa)$level>"
  symbols=$(nm -C --defined-only "$archive") || exit 1
  # What sanitizers and coverage add is left alone.
  symbols=$(printf '%s\n' "$symbols" |
    grep -vE ' (__odr_asan|DW\.ref|__gcov|__llvm|__sancov|asan\.|_GLOBAL__sub_[ID]_00)')
  exported=$(printf '%s\n' "$symbols" | grep -E '^[0-9a-f]+ [A-Zuv] ')
  leaks=$(printf '%s\n' "$exported" | grep -vF "$own")
  early=$(printf '%s\n' "$symbols" | grep -F ' _GLOBAL__sub_I_')
  if ! printf '%s\n' "$exported" | grep -qF "$own"; then
    echo "$archive exports no kernel of its level"
    status=1
  fi
  if [ -n "$leaks" ]; then
    echo "$archive must not export:"
    echo "$leaks"
    status=1
  fi
  if [ -n "$early" ]; then
    echo "$archive must not initialise objects before main:"
    echo "$early"
    status=1
  fi
  checked=$((checked + 1))
done
echo "$checked archives checked"
[ "$checked" -gt 0 ] && exit $status
