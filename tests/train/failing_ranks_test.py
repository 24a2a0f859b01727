#!/usr/bin/env python3
"""failing_ranks_test.py LAUNCHER PROGRAM: case 30 over real processes. However and wherever in a step
one rank of three ends, the run ends with an error within seconds, and says why."""
import re
import subprocess
import sys
import tempfile
import time

LAUNCHER, PROGRAM = sys.argv[1:]
PLACES = ("forward", "backward", "update", "save")  # by number, as failing_lines.h has them
# mpirun may end all ranks before one of them can tell; then it tells itself.
GONE = r"rank 1 .*is gone|process rank 1 with PID|Process name: \[\[\d+,1\],1\]"
CAUSES = {"throw": "the disk is on fire", "exit": GONE, "kill": GONE}
MOST_S = 15  # mpirun's own start and end included

faults = 0
for number, place in enumerate(PLACES):
    for how, cause in CAUSES.items():
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/text.txt", "w", encoding="utf-8") as text:
                text.write("In the beginning was the word, and the word was short.\n" * 100)
            begin = time.monotonic()
            done = subprocess.run([LAUNCHER, "3", PROGRAM, str(number), how, folder], timeout=60, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            seconds = time.monotonic() - begin
        wrong = ("status 0" if done.returncode == 0 else
                 "%.0f s" % seconds if seconds > MOST_S else
                 "no cause" if not re.search(cause, done.stdout) else "")
        if wrong:
            faults += 1
            print("%s in %s: %s\n%s" % (how, place, wrong, done.stdout))
sys.exit(faults > 0)
