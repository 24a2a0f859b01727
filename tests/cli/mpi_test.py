#!/usr/bin/env python3
"""Trainings over processes: started by the program, by mpirun, on one host and on two."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, "tests/cli")  # from the runfiles of the test
from cli_case import SHERD, CliCase  # noqa: E402

RUN_MPI = os.path.abspath("tools/run_mpi.sh")
TWO_HOSTS = os.path.abspath("tools/run_two_hosts.sh")


class MpiTest(CliCase):
    def setUp(self):
        super().setUp()
        # Open MPI never frees what it sets up at the start.
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
        self.train = ("train", self.config(steps=3), "--strategy", "fsdp",
                      "--set", "dist.sync=every")

    def losses(self, run):
        return [(m["step"], m["loss"], m["grad_norm"]) for m in self.metrics(run)]

    def threads(self, ranks):
        self.sherd(*self.train, "--quiet", "--ranks", ranks, "--out", "threads" + ranks)
        return self.losses("threads" + ranks)

    def test_the_program_starts_mpirun(self):
        shown = self.sherd(*self.train, "--engine", "mpi", "--ranks", "2", "--out", "mpi")
        self.assertIn("2 ranks as mpi, fsdp", shown)
        self.assertEqual(shown.count("step 3/3"), 1)
        self.assertIn("rank 1: done", (self.folder / "mpi/logs/rank_1.log").read_text())
        self.assertEqual(self.losses("mpi"), self.threads("2"))

    def test_mpirun_starts_the_program(self):
        self.run_program(RUN_MPI, "3", SHERD, *self.train, "--engine", "mpi", "--out", "mpi")
        self.assertEqual(self.losses("mpi"), self.threads("3"))
        error = self.run_program(RUN_MPI, "3", SHERD, *self.train, "--engine", "mpi", "--ranks", "2",
                                 "--out", "x", status=2, quiet=False)
        self.assertIn("dist.ranks is 2 but mpirun started 3", error)

    def test_two_hosts(self):
        expected = self.threads("4")
        for number, way in enumerate(([], ["--loopback"])):
            self.run_program(TWO_HOSTS, *way, "4", SHERD, *self.train, "--engine", "mpi",
                             "--set", "dist.ranks_per_host={ranks_per_host}", "--out", f"hosts{number}",
                             quiet=False)
            self.assertEqual(self.losses(f"hosts{number}"), expected)


if __name__ == "__main__":
    unittest.main()
