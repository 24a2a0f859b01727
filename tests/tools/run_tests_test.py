#!/usr/bin/env python3
"""run_tests counts what a stand-in for Bazel reports: passes, failures, crashes, skips."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import stat
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
PATH = os.path.abspath(os.path.join("tools", "run_tests"))  # from the runfiles of the test
LOADER = importlib.machinery.SourceFileLoader("run_tests", PATH)
run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", LOADER))
LOADER.exec_module(run_tests)

# Copies the events prepared for this phase to where it was told to write them.
FAKE_BAZEL = """#!/usr/bin/env python3
import os, shutil, sys
if sys.argv[1] == "build":
    sys.exit(0)
here = os.path.dirname(os.path.abspath(__file__))
phase = next((a[len("--config="):] for a in sys.argv if a.startswith("--config=")), "tests")
target = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--build_event_json_file="))
shutil.copy(os.path.join(here, phase + ".events"), target)
sys.exit(int(open(os.path.join(here, phase + ".status")).read()))
"""
PASS = '<testcase name="good"/>'
FAIL = '<testcase name="bad"><failure message="x"/></testcase>'
SKIP = '<testcase name="off"><skipped message="no GPU"/></testcase>'


class RunTestsTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory()
        self.addCleanup(self.root.cleanup)
        os.mkdir(self.path("tools"))
        self.write("bazel", FAKE_BAZEL)
        os.chmod(self.path("bazel"), stat.S_IRWXU)
        for name in ("check_format", "check_headers"):
            self.write("tools/" + name, "#!/bin/sh\nexit 0\n")
            os.chmod(self.path("tools/" + name), stat.S_IRWXU)
        self.write("tools/allowed_skips", "# why\n//t:gpu* off\n//t:cuda (not built)\n")
        for phase in ("tests", "asan", "tsan", "fuzz"):
            self.phase(phase, [])

    def path(self, name):
        return os.path.join(self.root.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)

    def phase(self, name, events, status=0):
        self.write(name + ".events", "".join(json.dumps(e) + "\n" for e in events))
        self.write(name + ".status", str(status))

    def result(self, label, status, cases=None, log=""):
        outputs = []
        stem = label.strip("/").replace(":", "_")
        if cases is not None:
            self.write(stem + ".xml", "<testsuites><testsuite>%s</testsuite></testsuites>" % cases)
            outputs.append({"name": "test.xml", "uri": "file://" + self.path(stem + ".xml")})
        self.write(stem + ".log", log)
        outputs.append({"name": "test.log", "uri": "file://" + self.path(stem + ".log")})
        return {"id": {"testResult": {"label": label, "run": 1, "shard": 1}},
                "testResult": {"status": status, "testActionOutput": outputs}}

    @staticmethod
    def configured(label):
        return {"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": "cc_test rule"}}

    @staticmethod
    def not_built(label, reason=None):
        event = {"id": {"targetCompleted": {"label": label}}}
        event["aborted" if reason else "completed"] = {"reason": reason} if reason else {}
        return event

    def run_all(self, *args):
        """(exit status, printed lines)"""
        path = self.root.name + os.pathsep + os.environ["PATH"]
        printed = io.StringIO()
        with unittest.mock.patch.object(run_tests, "ROOT", self.root.name), \
                unittest.mock.patch.object(sys, "argv", ["run_tests"] + list(args)), \
                unittest.mock.patch.dict(os.environ, PATH=path), contextlib.redirect_stdout(printed):
            status = run_tests.main()
        return status, printed.getvalue().splitlines()

    def expect(self, line, *args):
        status, printed = self.run_all(*args)
        self.assertEqual(printed[-1], line, printed)
        self.assertEqual(status, 0 if line.endswith(" 0 failed") else 1)
        return "\n".join(printed)

    def test_cases_are_counted(self):
        self.phase("tests", [self.result("//t:a", "PASSED", PASS * 3), self.result("//t:b", "PASSED", PASS)])
        self.expect("4 passed, 0 failed")

    def test_failed_case(self):
        self.phase("tests", [self.result("//t:a", "FAILED", PASS + FAIL)], 3)
        self.assertIn("failed: //t:a bad", self.expect("1 passed, 1 failed"))

    def test_died_without_report(self):
        self.phase("tests", [self.result("//t:a", "FAILED"), self.result("//t:b", "TIMEOUT", PASS * 2)], 3)
        self.expect("2 passed, 2 failed")

    def test_passed_without_report(self):
        self.phase("tests", [self.result("//t:a", "PASSED")])
        self.expect("1 passed, 0 failed")

    def test_report_and_status_disagree(self):
        self.phase("tests", [self.result("//t:a", "PASSED", FAIL)])
        self.assertEqual(self.run_all()[0], 1)

    def test_did_not_build(self):
        self.phase("tests", [self.configured("//t:a"), self.not_built("//t:a")], 1)
        self.assertIn("did not build: //t:a", self.expect("0 passed, 1 failed"))

    def test_bazel_itself_failed(self):
        self.phase("tests", [], 1)
        self.expect("0 passed, 1 failed")

    def test_no_test_found_is_no_failure(self):
        self.phase("tests", [], run_tests.NO_TESTS_FOUND)
        self.expect("0 passed, 0 failed")

    def test_event_cut_short(self):
        self.phase("tests", [self.result("//t:a", "PASSED", PASS)])
        with open(self.path("tests.events"), "a", encoding="utf-8") as out:
            out.write('{"id": {"testRes')
        self.expect("1 passed, 0 failed")

    def test_all_adds_up_the_phases(self):
        self.phase("tests", [self.result("//t:a", "PASSED", PASS)])
        self.phase("asan", [self.result("//t:b", "FAILED", FAIL)], 3)
        self.phase("fuzz", [self.result("//t:f", "PASSED", log="stat::number_of_executed_units: 123\n")])
        printed = self.expect("4 passed, 1 failed", "--all")  # two checks, a, f
        self.assertIn("//t:f: 123 executions", printed)

    def test_failed_check(self):
        self.write("tools/check_format", "#!/bin/sh\nexit 1\n")
        self.expect("1 passed, 1 failed", "--all")

    def test_skips(self):
        self.phase("tests", [self.result("//t:gpu_a", "PASSED", PASS + SKIP)])
        self.expect("3 passed, 0 failed", "--all")
        self.phase("tests", [self.result("//t:cpu", "PASSED", PASS + SKIP)])
        self.expect("1 passed, 0 failed")
        printed = self.expect("3 passed, 1 failed", "--all")
        self.assertIn("not in tools/allowed_skips: //t:cpu off: no GPU", printed)

    def test_target_that_no_phase_builds(self):
        skipped = [self.configured("//t:x"), self.not_built("//t:x", "SKIPPED")]
        self.phase("tests", skipped, 0)
        self.assertIn("//t:x (not built)", self.expect("2 passed, 1 failed", "--all"))
        self.phase("fuzz", [self.result("//t:x", "PASSED")])
        self.expect("3 passed, 0 failed", "--all")

    def test_target_that_need_not_be_built(self):
        self.phase("tests", [self.configured("//t:cuda"), self.not_built("//t:cuda", "SKIPPED")])
        self.expect("2 passed, 0 failed", "--all")


if __name__ == "__main__":
    unittest.main()
