#!/bin/sh
# The check of kernel archives accepts a clean one and refuses each kind of leak.
check=$PWD/build_defs/isa_symbols_test.sh
cd "${TEST_TMPDIR:?}" || exit 1
status=0

kernel='#include <vector>
namespace sherd {
enum class Isa : unsigned char { base, avx2 };
inline int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
int seed();
struct K { template <Isa I> int run(int x) const; };
'

# expect 0|1 NAME LEVEL BODY: the archive of a kernel with this body passes (0) or not (1).
expect() {
  printf '%s\ntemplate <Isa I> int K::run(int x) const { %s }\n%s\n}\n' "$kernel" "$4" \
    "template int K::run<Isa::$3>(int) const; ${5:-}" >code.cc
  rm -f ./*.a
  g++ -std=c++20 -O0 -c code.cc -o code.o && ar rc "lib$2_kernels_avx2.pic.a" code.o || exit 1
  sh "$check" "lib$2_kernels_avx2.pic.a" >log 2>&1
  if [ $? != "$1" ]; then
    echo "$2: expected status $1"
    cat log
    status=1
  fi
}

expect 0 clean avx2 'return thrice(x);'
expect 1 inline_function avx2 'return twice(x);'
expect 1 library_template avx2 'return std::vector<int>(1, x).at(0);'
expect 1 other_function avx2 'return x;' 'int h() { return 2; }'
expect 1 early_code avx2 'return x;' 'static int first = seed();'
expect 1 wrong_level base 'return x;'

sh "$check" nothing.txt >/dev/null && { echo "passes without an archive"; status=1; }
exit $status
