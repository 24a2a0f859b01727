#!/usr/bin/env python3
"""The program as a user meets it: what it prints, which files it leaves, how it exits."""
import json
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, "tests/cli")  # from the runfiles of the test
from cli_case import CliCase  # noqa: E402


class CliTest(CliCase):
    def test_version_and_help(self):
        self.assertRegex(self.sherd("--version"), r"^sherd \d+\.\d+\.\d+\n$")
        commands = self.sherd("--help")
        for command in ("train", "generate", "checkpoint", "tokenize", "config", "doctor", "bench",
                        "compare", "plan", "trace"):
            self.assertIn(command, commands)
            self.sherd(command, "--help")
        keys = self.sherd("train", "--help")
        for key in ("run.seed = 1", "optim.weight_decay = 0.1", 'dist.strategy = "ddp"',
                    "model.layers = 4", "train.clip_norm = 1"):
            self.assertIn(key, keys)

    def test_wrong_use(self):
        self.sherd(status=2)
        self.assertIn("train", self.sherd("trian", status=2))
        self.sherd("train", status=2)
        self.sherd("train", self.config(), "--frobnicate", status=2)
        for args in (("plan", "x.toml"), ("compare", "x.toml", "--steps", "3"),
                     ("trace", "x.toml"), ("checkpoint", "verify", "x"),
                     ("config", "from-deepspeed", "x"),
                     ("train", self.config(), "--deepspeed", "x.json")):
            self.assertIn("not available in this version", self.sherd(*args, status=2))

    def test_a_run_from_start_to_text(self):
        config = self.config()
        out = self.sherd("train", config, "--set", "log.sample=30", "--set", "log.sample_prompt=In",
                         "--print-param-groups", "--set", "log.memory=true")
        self.assertIn("step 1/20  loss", out)
        self.assertIn("step 20/20  loss", out)
        self.assertIn("step 10: validation loss", out)
        self.assertIn("blocks.0.attn.qkv.weight [48, 16]", out)
        self.assertIn("compute f32, master f32", out)
        self.assertIn("optimizer", out)
        self.assertEqual(len(out.rsplit("\nIn", 1)[1].strip("\n")), 30)
        steps = self.metrics()
        self.assertEqual([m["step"] for m in steps], list(range(1, 21)))
        self.assertEqual([m["step"] for m in steps if "val_loss" in m], [10, 20])

        run = "runs/small"
        inspected = self.sherd("checkpoint", "inspect", run)
        self.assertIn("steps            20 of 20", inspected)
        self.assertIn("blocks.0.mlp.up.weight f32 [64, 16]", inspected)
        self.assertIn("wte.weight.m f32", inspected)
        greedy = ("--prompt", "In the", "--tokens", "40", "--temperature", "0")
        text = self.sherd("generate", run, *greedy)
        self.assertEqual(len(text), len("In the") + 40 + 1)
        self.assertTrue(text.startswith("In the"))
        checkpoint = run + "/checkpoints/step-00000020"
        self.assertEqual(text, self.sherd("generate", checkpoint, *greedy, "--threads", "2"))
        warm = ("--tokens", "40", "--top-k", "5", "--top-p", "0.9")
        self.assertEqual(self.sherd("generate", run, *warm, "--seed", "7"),
                         self.sherd("generate", run, *warm, "--seed", "7"))
        self.assertNotEqual(self.sherd("generate", run, *warm, "--seed", "7"),
                            self.sherd("generate", run, *warm, "--seed", "8"))
        self.assertIn("at most 16", self.sherd("generate", run, "--prompt", "e" * 17, status=2))
        self.assertIn("vocabulary", self.sherd("generate", run, "--prompt", "Z", status=2))
        self.assertIn("top-p", self.sherd("generate", run, "--top-p", "1.5", status=2))
        self.assertIn("no folder", self.sherd("generate", "runs/other", status=2))

    def test_quiet_and_shorts(self):
        config = self.config(steps=3)
        self.assertEqual(self.sherd("train", config, "--quiet", "--out", "here"), "")
        self.assertEqual(len(self.metrics("here")), 3)
        self.sherd("train", config, "--quiet", "--ranks", "1", "--engine", "threads",
                   "--strategy", "fsdp", "--device", "cpu", "--threads-per-rank", "2")
        resolved = (self.folder / "runs/small/config.toml").read_text()
        self.assertIn('strategy = "fsdp"', resolved)
        self.assertIn("threads_per_rank = 2", resolved)
        self.assertIn("dist.ranks", self.sherd("train", config, "--ranks", "0", status=2))
        self.assertIn("run.device", self.sherd("train", config, "--device", "cuda", status=2))

    def test_ranks(self):
        config = self.config(steps=3)
        shown = self.sherd("train", config, "--ranks", "2", "--strategy", "fsdp", "--out", "fsdp",
                           "--set", "dist.sync=every")
        self.assertIn("2 ranks as threads, fsdp", shown)
        self.sherd("train", config, "--quiet", "--ranks", "2", "--out", "ddp",
                   "--set", "dist.sync=every")
        fsdp, ddp = self.metrics("fsdp"), self.metrics("ddp")
        self.assertEqual([m["loss"] for m in fsdp], [m["loss"] for m in ddp])
        self.assertGreater(fsdp[2]["comm_bytes"]["all_gather"], 0)
        self.assertGreater(ddp[2]["comm_bytes"]["all_reduce"], 0)
        self.assertIn("replicate = 2 does not divide ranks = 3", self.sherd(
            "train", config, "--ranks", "3", "--strategy", "hsdp[replicate=2]", "--out", "x", status=2))

    def test_narrated_step(self):
        config = self.config(steps=3)
        shown = self.sherd("train", config, "--ranks", "2", "--strategy", "fsdp", "--out", "told",
                           "--narrate", "1")
        self.assertIn("the other ranks' lines are in told/logs", shown)
        for line in ("rank 0 begins step 1, micro-batch 0",
                     "rank 0 gathers ahead blocks.0: blocks.0.ln1.weight rows 0-7 of its own, "
                     "rows 8-15 from rank 1; blocks.0.ln1.bias rows",
                     "rank 0 uses blocks.0 in backward",
                     "rank 0 reduces blocks.0: gradients become sums over the ranks",
                     "rank 0 ends step 1"):
            self.assertIn("\n" + line, shown)
        self.assertNotIn("step 2,", shown)
        self.assertNotIn("rank 1 ", shown.replace("from rank 1", ""))
        log = (self.folder / "told/logs/rank_1.log").read_text()
        self.assertIn("rank 1: 2 ranks as threads, fsdp", log)
        self.assertIn("blocks.0.ln1.weight rows 0-7 from rank 0, rows 8-15 of its own", log)
        self.assertIn("step 3/3", log)
        self.assertIn("rank 1: done", log)

    def test_refusals(self):
        config = self.config()

        def refused(*args, status=2):
            return self.sherd("train", config, "--out", "x", *args, status=status)

        error = refused("--set", "optim.lrr=1")
        self.assertIn("optim.lrr", error)
        self.assertIn("nearest known key is optim.lr", error)
        bad = self.folder / "bad.toml"
        bad.write_text('[data]\nfiles = ["x"]\n\n[optim]\n  wramup = 3\n')
        error = self.sherd("train", str(bad), status=2)
        self.assertIn("bad.toml:5:3: optim.wramup", error)
        self.assertIn("optim.warmup", error)
        self.assertIn("does not divide", refused("--set", "model.heads=3"))
        self.assertIn("no-such", refused("--set", 'data.files=["no-such.txt"]'))
        self.sherd("train", "no-such.toml", status=1)
        empty = self.folder / "empty.txt"
        empty.write_text("")
        self.assertIn("empty.txt", refused("--set", f'data.files=["{empty}"]', status=1))
        short = self.folder / "short.txt"
        short.write_text("only this")
        self.assertIn("too few", refused("--set", f'data.files=["{short}"]'))
        zero = self.folder / "zero.bin"
        zero.write_bytes(b"SHERDTOK" + (1).to_bytes(4, "little") + bytes(52))
        error = refused("--set", f'data.files=["{zero}"]', "--set", "data.tokenizer=byte", status=1)
        self.assertIn("zero.bin", error)
        self.assertIn("memory", refused("--set", "run.memory_limit=100KiB", status=1))
        self.assertFalse((self.folder / "x").exists())

    def test_tokenize(self):
        out = self.sherd("tokenize", "text.txt", "--tokenizer", "char", "-o", "text.bin")
        self.assertIn("5500 tokens", out)
        vocab = len(set(self.text.read_text()))
        self.assertIn(f"vocabulary {vocab}", out)
        self.sherd("train", self.config(steps=2), "--quiet",
                   "--set", 'data.files=["text.bin"]', "--set", "data.tokenizer=byte", status=2)
        plain = self.folder / "tokens.toml"
        plain.write_text('[run]\nsteps = 2\n[model]\npreset = "tiny"\n[data]\nfiles = ["text.bin"]\n')
        self.assertIn(f"vocabulary {vocab}", self.sherd("train", str(plain)))
        self.assertIn("tokenizer", self.sherd("generate", "runs/tokens", status=2))
        self.assertIn("no file", self.sherd("tokenize", "none.txt", "-o", "y.bin", status=2))

    def test_config(self):
        shown = self.sherd("config", "show", self.config(), "--set", "optim.lr=0.5")
        self.assertIn("lr = 0.5", shown)
        copy = self.folder / "copy.toml"
        copy.write_text(shown)
        self.assertEqual(self.sherd("config", "show", str(copy)), shown)
        self.assertIn("peak learning rate", self.sherd("config", "explain", "optim.lr"))
        self.assertIn("optim.betas", self.sherd("config", "explain", "optim"))
        self.assertIn("optim.lr", self.sherd("config", "explain", "optim.lrr", status=2))

    def test_doctor(self):
        out = self.sherd("doctor")
        self.assertIn("usable cores", out)
        self.assertIn("MPI              Open MPI", out)
        self.assertRegex(out, r"instruction set  \w+ \(run.isa: base")
        self.assertRegex(out, r"io_uring         (works|does not work here \()")
        self.assertIn("oneDNN", self.sherd("doctor", "--licences"))

    def test_bench_disk(self):
        out = self.sherd("bench", "disk", "--bytes", "4MiB", "--json", "disk.json")
        self.assertIn("on the disk", out)
        found = json.loads((self.folder / "disk.json").read_text())["disk"]
        self.assertEqual(found["bytes"], 4 << 20)
        for key in ("write_mb_per_s", "read_mb_per_s", "sync_ms"):
            self.assertGreater(found[key], 0)
        self.assertEqual(list(self.folder.glob("sherd-bench*")), [])
        self.assertIn("at least 1 MiB", self.sherd("bench", "disk", "--bytes", "5", status=2))
        self.assertIn("bytes free", self.sherd("bench", "disk", "--bytes", "9000TiB", status=1))

    def test_isa_of_a_run(self):
        # A lower instruction set is one for products, too: other bits, and they repeat.
        config = self.config(steps=3)
        losses = []
        for name, isa in (("a", "base"), ("b", "base"), ("c", "auto")):
            self.sherd("train", config, "--quiet", "--out", name, "--set", f"run.isa={isa}")
            losses.append([m["loss"] for m in self.metrics(name)])
        self.assertEqual(losses[0], losses[1])
        for base, best in zip(losses[0], losses[2]):
            self.assertAlmostEqual(base, best, delta=1e-4 * best)
        self.assertIn("avx1024", self.sherd("train", config, "--out", "d", "--set",
                                            "run.isa=avx1024", status=2))

    def wait_for_steps(self, process, steps):
        path = self.folder / "runs/small/metrics.jsonl"
        for _ in range(1200):
            self.assertIsNone(process.poll(), "ended too early")
            if path.exists() and path.read_text().count("\n") >= steps:
                return
            time.sleep(0.05)
        self.fail("no steps")

    def test_bench_op(self):
        out = self.sherd("bench", "op", "--dtypes", "f32", "--json", "op.json")
        self.assertIn("of triad", out)
        found = json.loads((self.folder / "op.json").read_text())
        self.assertEqual(found["ops"][0]["op"], "triad")
        self.assertIn("AdamW", {o["op"] for o in found["ops"]})
        for o in found["ops"]:
            self.assertGreater(o["ms"], 0)

    def test_bench_comm(self):
        out = self.sherd("bench", "comm", "--ranks", "3", "--kib", "4,16", "--json", "comm.json")
        self.assertIn("3 ranks as threads", out)
        found = json.loads((self.folder / "comm.json").read_text())
        self.assertEqual((found["engine"], found["ranks"]), ("threads", 3))
        ops = {c["op"] for c in found["collectives"]}
        self.assertLessEqual({"memcpy", "all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_to_all"}, ops)
        # The least multiple of 12 bytes, once for each op and size.
        self.assertEqual({c["bytes"] for c in found["collectives"]}, {4104, 16392})
        self.assertEqual(len(found["collectives"]), 2 * len(ops))
        for c in found["collectives"]:
            self.assertGreater(c["us"]["min"], 0)
            self.assertGreaterEqual(c["us"]["median"], c["us"]["min"])
            self.assertEqual("of_memcpy" in c, c["op"] != "memcpy")
        self.assertEqual(len(found["tiny_parameters"]), 4)
        self.assertIn("expected threads or mpi", self.sherd("bench", "comm", "--engine", "gloo", status=2))

    def test_signals_save(self):
        config = self.config(steps=1000000)
        for number, resume in ((signal.SIGTERM, []), (signal.SIGUSR1, ["--resume", "latest"]),
                               (signal.SIGINT, ["--resume", "latest"])):
            before = len(self.metrics()) if resume else 0
            process = self.start("train", config, *resume)
            self.wait_for_steps(process, before + 3)
            if number == signal.SIGTERM:
                self.assertIn("another process", self.sherd("train", config, status=2))
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
            self.assertIn(f"{signal.Signals(number).name}: saved after step", out)
            steps = [m["step"] for m in self.metrics()]
            self.assertEqual(steps, list(range(1, len(steps) + 1)))
            newest = max((self.folder / "runs/small/checkpoints").iterdir()).name
            self.assertEqual(newest, f"step-{len(steps):08d}")

    def test_a_killed_run_leaves_its_checkpoint(self):
        config = self.config(steps=1000000)
        args = ("train", config, "--set", "checkpoint.every=2")
        process = self.start(*args)
        self.wait_for_steps(process, 7)
        process.kill()
        process.communicate()
        process = self.start(*args, "--resume", "latest")
        self.wait_for_steps(process, len(self.metrics()) + 2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("resumed after step", out)

    def test_not_finite(self):
        error = self.sherd("train", self.config(), "--set", "optim.name=sgd",
                           "--set", "optim.lr=1e5", "--set", "train.clip_norm=0", status=1)
        self.assertIn("first value that is not finite", error)


if __name__ == "__main__":
    unittest.main()
