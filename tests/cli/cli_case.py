"""A folder with a text and a configuration, and the program run in it."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SHERD = os.path.abspath("cli/sherd")  # from the runfiles of the test

CONFIG = """
[run]
steps = {steps}
threads_per_rank = 1

[model]
layers = 1
heads = 2
d_model = 16
context = 16

[data]
files = ["{text}"]
tokenizer = "char"

[train]
micro_batch = 4
eval_every = 10
"""


class CliCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text.txt"
        self.text.write_text("In the beginning was the word, and the word was short.\n" * 100)

    def config(self, steps=20, name="small.toml"):
        path = self.folder / name
        path.write_text(CONFIG.format(steps=steps, text=self.text))
        return str(path)

    def start(self, *args):
        return self.start_program(SHERD, *args)

    def start_program(self, *command):
        return subprocess.Popen(command, cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})

    def sherd(self, *args, status=0):
        return self.run_program(SHERD, *args, status=status)

    def run_program(self, *command, status=0, quiet=True):
        """What it printed: of the two streams the one that `status` says; quiet: alone."""
        process = self.start_program(*command)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, status, f"{command}\n{out}\n{err}")
        if quiet:
            self.assertEqual(err == "", status == 0, err)
        return out if status == 0 else err

    def metrics(self, run="runs/small"):
        lines = (self.folder / run / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]
