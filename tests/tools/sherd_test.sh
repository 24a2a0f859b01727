#!/bin/sh
# ./sherd with stand-ins for the system's programs: what it refuses, installs, builds, skips and hands on.
script=$PWD/sherd
work=${TEST_TMPDIR:?}
status=0
mkdir -p "$work/bin" "$work/clone/base" "$work/elsewhere"
cp "$script" "$work/clone/sherd"
echo source >"$work/clone/base/a.h"
echo source >"$work/clone/base/b.h"
ln -s "$work/clone/sherd" "$work/link"

# stub NAME SHELL-CODE: a stand-in for a program; each call is noted in $work/calls.
stub() {
  printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$work" "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# What the stand-in for Bazel builds prints its arguments, its folder and the first line of its input.
program='#!/bin/sh\nread -r line\necho "ran [$1] [$2] in $PWD reads $line"\nexit 3\n'
build_works='
  [ "$1" = build ] || exit 0
  mkdir -p out/bin/cli && printf '"'$program'"' >out/bin/cli/sherd && chmod +x out/bin/cli/sherd'
reset() {
  rm -rf "$work/bin" "$work/calls" "$work/clone/out"
  mkdir "$work/bin"
  stub uname 'echo Linux x86_64'
  stub id '[ "$1" = -u ] && echo 1000 || echo someone'
  stub getent "echo someone:x:1000:1000::$work:/bin/sh"
  stub dpkg-query 'for p; do echo "installed $p"; done'
  stub apt-get ''
  stub sudo 'exit 1'
  stub g++ 'echo 12'
  stub python3 'echo tested "$@"'
  stub bazel "$build_works"
}

# run ARGS...: ./sherd from another folder, with the stand-ins first on the path.
run() {
  (cd "$work/elsewhere" && echo hello | PATH=$work/bin:$PATH HOME=$work sh "$work/link" "$@" \
    >"$work/out" 2>"$work/err")
  code=$?
}

# expect NAME CONDITION...
expect() {
  name=$1
  shift
  "$@" && return
  status=1
  echo "not so: $name (exit $code)"
  cat "$work/out" "$work/err" "$work/calls"
}
printed() { grep -qF -- "$1" "$work/out"; }
said() { grep -qF -- "$1" "$work/err"; }
called() { grep -q -- "^$1" "$work/calls" 2>/dev/null; }
did_not_call() { ! called "$1"; }

reset
run 'a b' c
expect "builds the first time" called "bazel build"
expect "arguments, folder and input reach the program" \
  printed "ran [a b] [c] in $work/elsewhere reads hello"
expect "its exit status comes back" test "$code" = 3
expect "nothing is installed" did_not_call apt-get

rm "$work/calls"
run x
expect "runs again" printed "ran [x]"
expect "what is up to date is not built" did_not_call bazel

sleep 0.02
echo changed >"$work/clone/base/a.h"
run x
expect "a changed file is built" called "bazel build"

rm "$work/calls"
rm "$work/clone/base/b.h"
run x
expect "a removed file is built" called "bazel build"

reset
stub bazel '[ "$1" != build ]'
run x
expect "a failed build ends with 1" test "$code" = 1
expect "and says so" said "the build failed"

reset
stub uname 'echo Linux aarch64'
run x
expect "another machine is refused" test "$code" = 2
expect "by name" said "aarch64"

reset
stub dpkg-query 'echo "installed g++"'
run x
expect "without rights a missing package is refused" test "$code" = 2
expect "with the command that installs it" said "apt-get install -y --no-install-recommends bazel-bootstrap"
expect "and without touching anything" did_not_call apt-get

stub sudo '[ "$1" = -n ] || "$@"'
run x
expect "with sudo they are installed" called "apt-get .* install .*bazel-bootstrap"
expect "and the program runs" printed "ran [x]"

stub apt-get 'case $* in *install*) echo no such package; exit 100 ;; esac'
rm -rf "$work/clone/out"
run x
expect "a failed installation ends with 2" test "$code" = 2
expect "and shows why" said "no such package"

reset
run test --config=asan //base:error_test
expect "tests run" printed "tools/run_tests --config=ci --config=asan //base:error_test"
expect "without clang" sh -c "! grep -q clang '$work/calls'"
run test --all
expect "--all needs clang" called ".* clang "

reset
stub uname 'echo Linux aarch64'
run test
expect "a refused test run still ends with its counts" test "$(tail -n 1 "$work/out")" = "0 passed, 1 failed"
exit $status
