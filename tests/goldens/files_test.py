#!/usr/bin/env python3
"""Every golden is small, says which torch made it, and holds what its hash was taken of."""
import hashlib
import json
import pathlib
import struct
import unittest

FOLDER = pathlib.Path(__file__).parent
DTYPES = {"F64": "float64", "F32": "float32", "I32": "int32", "BOOL": "bool"}


def content_hash(header, data):
    """As tools/goldens/files.py takes it."""
    digest = hashlib.sha256()
    for name in sorted(header):
        entry = header[name]
        start, end = entry["data_offsets"]
        shape = ",".join(map(str, entry["shape"]))
        digest.update(f"{name} {DTYPES[entry['dtype']]} {shape}\n".encode())
        digest.update(data[start:end])
    return digest.hexdigest()


class FilesTest(unittest.TestCase):
    def test_every_file(self):
        paths = sorted(FOLDER.glob("*.safetensors"))
        self.assertGreater(len(paths), 80)
        self.assertLess(sum(p.stat().st_size for p in paths), 6e6)
        for path in paths:
            with self.subTest(path.name):
                content = path.read_bytes()
                self.assertLess(len(content), 3e6 if path.stem in ("gpt2_small", "llama_small") else 105e3)
                length, = struct.unpack("<Q", content[:8])
                header = json.loads(content[8:8 + length])
                metadata = header.pop("__metadata__")
                self.assertRegex(metadata["torch"], r"^\d+\.\d+")
                self.assertIn("op", json.loads(metadata["case"]))
                self.assertEqual(metadata["sha256"], content_hash(header, content[8 + length:]))


if __name__ == "__main__":
    unittest.main()
