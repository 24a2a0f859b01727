#!/bin/sh
# The check of kernel archives accepts a clean one and refuses each kind of leak.
check=$PWD/build_defs/isa_symbols_test.sh
cd "${TEST_TMPDIR:?}" || exit 1
status=0

# expect 0|1 NAME SOURCE: the archive made from SOURCE passes (0) or not (1).
expect() {
  printf '%s\n' "$3" >code.cc
  rm -f ./*.a
  g++ -std=c++20 -O0 -c code.cc -o code.o && ar rc "lib$2_kernels_avx2.pic.a" code.o || exit 1
  sh "$check" "lib$2_kernels_avx2.pic.a" >log 2>&1
  if [ $? != "$1" ]; then
    echo "$2: expected status $1"
    cat log
    status=1
  fi
}

expect 0 clean 'namespace sherd::avx2 { static int twice(int x) { return 2 * x; } int f(int x) { return twice(x); } }'
expect 0 own_template 'namespace sherd::avx2 { template <class T> T g(T x) { return x; } int f(int x) { return g(x); } }'
expect 1 other_namespace 'namespace sherd::avx2 { int f() { return 1; } } namespace sherd { int h() { return 2; } }'
expect 1 inline_function 'namespace sherd { inline int h(int x) { return x + 1; } } namespace sherd::avx2 { int f(int x) { return h(x); } }'
expect 1 library_template '#include <vector>
namespace sherd::avx2 { int f(int x) { return std::vector<int>(1, x).at(0); } }'
expect 1 early_code 'int seed(); namespace sherd::avx2 { extern int f; int f = seed(); }'
expect 1 wrong_level 'namespace sherd::base { int f() { return 1; } }'

sh "$check" nothing.txt >/dev/null && { echo "passes without an archive"; status=1; }
exit $status
