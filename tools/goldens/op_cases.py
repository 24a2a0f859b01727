"""The ops: each case runs PyTorch in f64 on f32 inputs and keeps outputs and gradients."""
import math

import numpy as np
import torch
import torch.nn.functional as F

import llama
from goldens.files import Golden, draw


def op_golden(name, case, inputs, run):
    """`run(**tensors)` gives a tensor, or a dict of them; floating inputs get gradients."""
    args = {}
    for key, value in inputs.items():
        tensor = torch.from_numpy(np.array(value))
        if tensor.is_floating_point():
            tensor = tensor.double().requires_grad_()
        elif tensor.dtype == torch.int32:
            tensor = tensor.long()
        args[key] = tensor
    result = run(**args)
    results = result if isinstance(result, dict) else {"": result}
    tensors = {f"in.{k}": np.array(v) for k, v in inputs.items()}
    total = 0
    for key, value in results.items():
        suffix = f".{key}" if key else ""
        dout = draw(name, "dout" + suffix, shape=tuple(value.shape))
        tensors["out" + suffix] = value.detach().numpy()
        tensors["dout" + suffix] = np.asarray(dout)
        total = total + (value * torch.from_numpy(np.array(dout)).double()).sum()
    total.backward()
    for key, tensor in args.items():
        if tensor.is_floating_point():
            tensors[f"grad.{key}"] = tensor.grad.numpy()
    return Golden(name, case, tensors)


def products():
    def linear(name, shape, outputs, bias=True, activation=None):
        inputs = {"x": draw(name, "x", shape=shape),
                  "w": draw(name, "w", shape=(outputs, shape[-1]), scale=0.3)}
        if bias:
            inputs["b"] = draw(name, "b", shape=(outputs,))
        case = {"op": "linear", "bias": bias, "input_activation": activation or "none"}

        def run(x, w, b=None):
            return F.linear(F.gelu(x, approximate="tanh") if activation else x, w, b)
        return op_golden(name, case, inputs, run)

    yield linear("linear", (3, 7, 19), 13)
    yield linear("linear_no_bias", (3, 7, 19), 13, bias=False)
    yield linear("linear_gelu_tanh", (3, 7, 19), 13, activation="gelu_tanh")
    yield linear("linear_gelu_tanh_no_bias", (2, 5, 9), 6, bias=False, activation="gelu_tanh")
    yield linear("linear_one_row", (1, 33), 17)
    yield linear("linear_wide", (17, 70), 65)

    for name, a, b in [("matmul", (5, 7), (7, 4)), ("matmul_batched", (2, 3, 5, 7), (2, 3, 7, 4)),
                       ("matmul_batched_wide", (3, 17, 33), (3, 33, 18))]:
        yield op_golden(name, {"op": "matmul"},
                        {"a": draw(name, "a", shape=a), "b": draw(name, "b", shape=b)},
                        lambda a, b: a @ b)


def elementwise():
    for op, run in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div)]:
        for kind, a, b in [("same", (3, 5, 7), (3, 5, 7)), ("row", (3, 5, 7), (7,)),
                           ("both", (3, 1, 7), (5, 1)), ("scalar", (3, 5), ())]:
            name = f"{op}_{kind}"
            x, y = draw(name, "a", shape=a), np.asarray(draw(name, "b", shape=b))
            if op == "div":  # away from the pole
                y = np.asarray(y + np.copysign(np.float32(0.5), y), dtype=np.float32)
            yield op_golden(name, {"op": op}, {"a": x, "b": y},
                            lambda a, b, run=run: run(a, b))

    unary = {
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "gelu_erf": F.gelu,
        "relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": F.silu,
        "exp": torch.exp,
    }
    for op, run in unary.items():
        x = draw(op, "x", shape=(5, 67), scale=2)
        # The tails too, where a formula may lose its digits or overflow; exp stays finite.
        x[0, :8] = np.array([-90, -20, -10, -5, 5, 10, 20, 80], dtype=np.float32)
        if op == "exp":
            x[0, :8] /= 8
        yield op_golden(op, {"op": op}, {"x": x}, lambda x, run=run: run(x))


def reductions():
    for op, run in [("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax)]:
        for dims in [(2,), (1,), (0, 2), (0, 1, 2)]:
            for keep in ([False, True] if dims == (1,) else [False]):
                name = f"{op}_dims{''.join(map(str, dims))}{'_keep' if keep else ''}"
                yield op_golden(name, {"op": op, "dims": dims, "keep_dims": keep},
                                {"x": draw(name, "x", shape=(3, 5, 17))},
                                lambda x, run=run, dims=dims, keep=keep: run(x, dim=dims,
                                                                             keepdim=keep))

    for op, run in [("softmax", torch.softmax), ("log_softmax", torch.log_softmax)]:
        for kind, scale in [("", 1), ("_large", 40)]:
            name = op + kind
            yield op_golden(name, {"op": op, "dim": -1},
                            {"x": draw(name, "x", shape=(3, 5, 37), scale=scale)},
                            lambda x, run=run: run(x, dim=-1))

    for name, shape, mean in [("layer_norm", (4, 5, 37), 0), ("layer_norm_far_mean", (5, 64), 100),
                              ("layer_norm_narrow", (7, 2), 0)]:
        inputs = {"x": draw(name, "x", shape=shape) + np.float32(mean),
                  "weight": 1 + draw(name, "weight", shape=shape[-1:], scale=0.3),
                  "bias": draw(name, "bias", shape=shape[-1:])}
        yield op_golden(name, {"op": "layer_norm", "eps": 1e-5}, inputs,
                        lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, 1e-5))


def llama_parts():
    name = "rms_norm"
    inputs = {"x": draw(name, "x", shape=(4, 5, 37)),
              "weight": 1 + draw(name, "weight", shape=(37,), scale=0.3)}
    yield op_golden(name, {"op": "rms_norm", "eps": 1e-5}, inputs,
                    lambda x, weight: F.rms_norm(x, weight.shape, weight, 1e-5))

    def swiglu(x):
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up
    yield op_golden("swiglu", {"op": "swiglu"}, {"x": draw("swiglu", "x", shape=(3, 5, 42), scale=3)},
                    swiglu)

    for name, scaling in [("rotary", None),
                          ("rotary_llama3", {"factor": 4, "low_freq_factor": 1,
                                             "high_freq_factor": 4, "original_context": 32})]:
        yield op_golden(name, {"op": "rotary", "theta": 500, "scaling": scaling or "none"},
                        {"x": draw(name, "x", shape=(2, 40, 3, 16))},
                        lambda x, scaling=scaling: llama.rotate(x, 500, scaling))


def indexing():
    name = "embedding"
    indices = np.array([[3, 0, 3, 10, 7], [3, 3, 10, 1, 0], [9, 9, 9, 9, 9]], dtype=np.int32)
    yield op_golden(name, {"op": "embedding", "note": "repeated indices, rows never used"},
                    {"weight": draw(name, "weight", shape=(11, 6)), "indices": indices},
                    lambda weight, indices: F.embedding(indices, weight))

    for name, dim, sizes in [("concat_dim1", 1, (2, 5, 1)), ("concat_dim0", 0, (1, 3)),
                             ("concat_last", -1, (4, 1, 6))]:
        inputs = {}
        for i, size in enumerate(sizes):
            shape = [3, 4, 5]
            shape[dim] = size
            inputs[f"x{i}"] = draw(name, i, shape=tuple(shape))
        yield op_golden(name, {"op": "concat", "dim": dim}, inputs,
                        lambda dim=dim, **xs: torch.cat(list(xs.values()), dim))
    for name, dim, sizes in [("split_dim1", 1, (2, 5, 3)), ("split_last", -1, (4, 4, 4))]:
        shape = [3, 4, 5]
        shape[dim] = sum(sizes)
        yield op_golden(name, {"op": "split", "dim": dim, "sizes": sizes},
                        {"x": draw(name, "x", shape=tuple(shape))},
                        lambda x, sizes=sizes, dim=dim:
                        {str(i): part for i, part in enumerate(x.split(sizes, dim))})
    for dims in [(1, 0), (2, 0, 1), (0, 2, 1, 3), (2, 0, 3, 1)]:
        name = "permute_" + "".join(map(str, dims))
        yield op_golden(name, {"op": "permute", "dims": dims},
                        {"x": draw(name, "x", shape=(2, 3, 4, 5)[:len(dims)])},
                        lambda x, dims=dims: x.permute(dims))


def attention(q, k, v, mask=None, causal=False):
    """softmax(q kᵀ / sqrt(D)) v, written out; q [B,T,H,D], k and v [B,T,G,D], H = n G."""
    repeat = q.shape[2] // k.shape[2]  # query head h reads head h / repeat
    k, v = (x.repeat_interleave(repeat, dim=2) for x in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if causal:
        steps = q.shape[1]
        scores = scores.masked_fill(torch.ones(steps, steps).triu(1).bool(), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], -math.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)


def attentions():
    rows = [  # name, batch, steps, heads, key heads, head dim, causal, unmasked keys per sample
        ("sdpa_causal", 2, 37, 3, 3, 8, True, None),
        ("sdpa_bidirectional", 2, 37, 3, 3, 8, False, None),
        ("sdpa_padding", 3, 21, 2, 2, 8, False, (21, 13, 1)),
        ("sdpa_causal_padding", 3, 21, 2, 2, 8, True, (21, 13, 1)),
        ("sdpa_grouped_causal", 2, 37, 4, 2, 8, True, None),
        ("sdpa_grouped_bidirectional", 1, 37, 4, 2, 8, False, None),
        ("sdpa_one_step", 2, 1, 2, 2, 8, True, None),
        ("sdpa_causal_long", 1, 131, 1, 1, 16, True, None),
    ]
    for name, batch, steps, heads, groups, dim, causal, lengths in rows:
        inputs = {"q": draw(name, "q", shape=(batch, steps, heads, dim)),
                  "k": draw(name, "k", shape=(batch, steps, groups, dim)),
                  "v": draw(name, "v", shape=(batch, steps, groups, dim))}
        if lengths:
            inputs["mask"] = np.arange(steps) < np.array(lengths)[:, None]
        case = {"op": "sdpa", "causal": causal, "layout": "BTHD",
                "mask": "[B,T] bool, true: the key may be read" if lengths else "none"}

        def run(q, k, v, mask=None, causal=causal):
            ours = attention(q, k, v, mask, causal)
            if mask is None:  # PyTorch's own must say the same
                theirs = F.scaled_dot_product_attention(
                    q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal,
                    enable_gqa=q.shape[2] != k.shape[2]).transpose(1, 2)
                assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)
            return ours
        yield op_golden(name, case, inputs, run)


def losses():
    rows_of_cases = [  # name, rows, dim, vocabulary, ignored rows, label smoothing
        ("linear_cross_entropy", 21, 16, 53, (0, 4, 20), 0),
        ("linear_cross_entropy_one_row", 1, 7, 11, (), 0),
        ("linear_cross_entropy_all_ignored", 4, 5, 6, range(4), 0),
        ("linear_cross_entropy_smoothed", 21, 16, 53, (0, 4, 20), 0.1),
    ]
    for name, rows, dim, vocab, ignored, smoothing in rows_of_cases:
        targets = np.arange(rows, dtype=np.int32) * 7 % vocab
        targets[list(ignored)] = -1
        inputs = {"h": draw(name, "h", shape=(rows, dim)),
                  "w": draw(name, "w", shape=(vocab, dim), scale=0.5), "targets": targets}
        case = {"op": "linear_cross_entropy", "ignore_index": -1, "reduction": "sum"}
        if smoothing:
            case["label_smoothing"] = smoothing
        yield op_golden(name, case, inputs, lambda h, w, targets, smoothing=smoothing:
                        F.cross_entropy(h @ w.T, targets, ignore_index=-1, reduction="sum",
                                        label_smoothing=smoothing))


def op_cases():
    for part in (products, elementwise, reductions, llama_parts, indexing, attentions, losses):
        yield from part()
