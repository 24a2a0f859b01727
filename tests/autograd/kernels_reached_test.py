#!/usr/bin/env python3
"""Fails for each kernel that no test reaches, at a level this machine has.

kernels_reached_test.py --tests TEST... --archives ARCHIVE...: the kernels that exist are the symbols
of the archives; those reached are what the tests say (tests/support/kernel_probe.cc).
"""
import argparse
import re
import subprocess
import sys

KERNEL = re.compile(r" [A-Z] (?:void )?(\S.*)::run<\(sherd::Isa\)(\d)>\(long, long\) const$")


def existing(archives):
    """{(kernel, level)}"""
    found = set()
    for archive in archives:
        if not archive.endswith(".a"):
            continue
        symbols = subprocess.run(["nm", "-C", "--defined-only", archive], check=True,
                                 capture_output=True, text=True).stdout
        kernels = {(m[1], int(m[2])) for m in map(KERNEL.search, symbols.splitlines()) if m}
        if not kernels:
            sys.exit(f"{archive} has no kernel: its symbols are not read rightly")
        found |= kernels
    return found


def reached(tests):
    """({(kernel, level)}, the best level of this machine)"""
    found, best = set(), None
    for test in tests:
        run = subprocess.run([test, "--reporter", "kernels"], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{test} fails: {run.stdout}{run.stderr}")
        for line in run.stdout.splitlines():
            if line.startswith("level "):
                best = int(line.split()[1])
            elif line.startswith("reached "):
                kernel, level = line.removeprefix("reached ").rsplit(" ", 1)
                found.add((kernel, int(level)))
    return found, best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--archives", nargs="+", required=True)
    args = parser.parse_args()
    exist = existing(args.archives)
    ran, best = reached(args.tests)
    wanted = {(kernel, level) for kernel, level in exist if level <= best}
    missing = sorted(wanted - ran)
    for kernel, level in missing:
        print(f"never reached at level {level}: {kernel}")
    print(f"{len(wanted) - len(missing)} of {len(wanted)} kernels reached "
          f"at levels 0 to {best}, by {len(args.tests)} tests")
    sys.exit(1 if missing or not wanted else 0)


main()
