"""One golden as a file: safetensors with its case, torch's version and a hash of the content.

Names in a file: `in.<arg>` inputs, `out` or `out.<name>` results, `dout` or `dout.<name>` the
gradient that comes from above, `grad.<arg>` gradients. Inputs are f32 (indices i32, masks bool);
expected values are f64, computed in f64 from those f32 inputs, so a test chooses its tolerance.
"""
import dataclasses
import hashlib
import json
import struct
import zlib

import numpy as np
import torch
from safetensors import safe_open

DTYPE_NAMES = {"float64": "F64", "float32": "F32", "int32": "I32", "bool": "BOOL"}


@dataclasses.dataclass
class Golden:
    name: str  # of the file
    case: dict  # how it was made: op and arguments
    tensors: dict  # name -> numpy array


def draw(*key, shape, scale=1.0):
    """Normal f32 values that depend on `key` alone, so a new case changes no other."""
    generator = np.random.Generator(np.random.PCG64(zlib.crc32("/".join(map(str, key)).encode())))
    return (generator.standard_normal(shape) * scale).astype(np.float32)


def content_hash(tensors):
    """sha256 over `name dtype shape newline bytes` of each tensor, by name."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name]
        shape = ",".join(map(str, array.shape))
        digest.update(f"{name} {array.dtype.name} {shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write(golden, path):
    """By hand, since the safetensors package orders the metadata anew each time: equal goldens give
    equal bytes. Wide types come first, so every tensor is aligned."""
    order = sorted(golden.tensors, key=lambda n: (-golden.tensors[n].itemsize, n))
    header = {"__metadata__": {
        "case": json.dumps(golden.case, sort_keys=True),
        "sha256": content_hash(golden.tensors),
        "torch": torch.__version__,
    }}
    end = 0
    for name in order:
        array = golden.tensors[name]
        start, end = end, end + array.nbytes
        header[name] = {"dtype": DTYPE_NAMES[array.dtype.name], "shape": array.shape,
                        "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            f.write(golden.tensors[name].tobytes())


def read(path):
    """(tensors, metadata) of a file."""
    with safe_open(path, framework="numpy") as f:
        return {name: f.get_tensor(name) for name in f.keys()}, f.metadata()


def differences(golden, path, tolerance):
    """What keeps the file from being this golden, as lines; empty when it is."""
    tensors, metadata = read(path)
    if metadata["torch"].split("+")[0] != torch.__version__.split("+")[0]:  # +cpu, +cu132
        return [f"made by torch {metadata['torch']}, this is {torch.__version__}: cannot tell"]
    lines = []
    if metadata["sha256"] != content_hash(tensors):
        lines.append("the content is not what the hash says")
    if json.loads(metadata["case"]) != json.loads(json.dumps(golden.case)):
        lines.append("the case differs")
    for name in sorted(set(tensors) | set(golden.tensors)):
        if name not in tensors or name not in golden.tensors:
            lines.append(f"{name}: only on one side")
            continue
        was, now = tensors[name], golden.tensors[name]
        if was.dtype != now.dtype or was.shape != now.shape:
            lines.append(f"{name}: {was.dtype}{was.shape}, made now {now.dtype}{now.shape}")
            continue
        if was.size == 0:
            continue
        was, now = was.astype(np.float64), now.astype(np.float64)
        worst = float(np.max(np.abs(was - now) / np.maximum(1, np.abs(now))))
        if not worst <= tolerance:
            lines.append(f"{name}: differs by {worst:.3g}")
    return lines
