#!/usr/bin/env python3
"""configurations_test.py SHERD CONFIG…: each example's configuration runs (--smoke)."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    sherd, *configs = (os.path.abspath(path) for path in sys.argv[1:])
    assert len(configs) >= 4, configs
    with tempfile.TemporaryDirectory() as folder:
        for config in configs:
            name = pathlib.Path(config).stem
            subprocess.run([sherd, "train", config, "--smoke", "--quiet"], check=True, cwd=folder,
                           env={**os.environ, "XDG_CACHE_HOME": folder})
            lines = (pathlib.Path(folder) / "runs" / name / "metrics.jsonl").read_text().splitlines()
            steps = [json.loads(line) for line in lines]
            assert [s["step"] for s in steps] == [1, 2, 3], steps
            assert all(math.isfinite(s["loss"]) and s["loss"] > 0 for s in steps), steps
            assert steps[-1]["val_loss"] > 0, steps
            print(f"{name}: loss {steps[-1]['loss']:.4f}")


if __name__ == "__main__":
    main()
