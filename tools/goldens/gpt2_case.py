"""A whole small GPT-2 in f64: loss, every gradient, and the losses of ten AdamW steps."""
import numpy as np
import torch

from goldens.files import Golden, draw
from gpt2 import Gpt2

NAME = "gpt2_small"
MODEL = {"layers": 4, "heads": 4, "channels": 64, "vocab": 96, "context": 48}
BATCH = 3
OPTIM = {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "clip_norm": 1.0,
         "steps": 10}


def start_value(golden, name, shape):
    """Larger than a usual initialisation and nowhere constant, so that a part left out shows."""
    if len(shape) == 1:
        near_one = name.endswith("weight")
        return np.float32(near_one) + draw(golden, name, shape=shape, scale=0.1)
    return draw(golden, name, shape=shape, scale=0.1 if name.startswith("w") else shape[1] ** -0.5)


def step_of(golden, model, vocab, context):
    """Gives the model its weights; they, a batch, the loss, and its gradients as tensors."""
    weights = {name: start_value(golden, name, tuple(p.shape))
               for name, p in model.named_parameters()}
    model.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()}, strict=False)

    noise = draw(golden, "tokens", shape=(BATCH, context + 1), scale=1e6)
    stream = (noise.astype(np.int64) % vocab).astype(np.int32)
    inputs, targets = stream[:, :-1].copy(), stream[:, 1:].copy()
    x, y = torch.from_numpy(inputs).long(), torch.from_numpy(targets).long()

    tensors = dict(weights)
    tensors["in.tokens"], tensors["in.targets"] = inputs, targets
    loss_sum = model(x, y, reduction="sum")
    (loss_sum / y.numel()).backward()
    tensors["out.loss_sum"] = loss_sum.detach().numpy().copy()
    tensors["out.loss_mean"] = (loss_sum / y.numel()).detach().numpy().copy()
    for name, p in model.named_parameters():
        tensors[f"grad.{name}"] = p.grad.numpy().copy()
    return tensors, x, y


def gpt2_case():
    """Weights under their own names (f32); `in.tokens`, `in.targets` [B, T] i32; `out.loss_sum`,
    `out.loss_mean`; `grad.<weight>` of the mean loss; `out.losses[k]` after k + 1 steps and
    `out.grad_norms[k]` before clipping in step k + 1, all on the one batch."""
    model = Gpt2(**MODEL).double()
    tensors, x, y = step_of(NAME, model, MODEL["vocab"], MODEL["context"])

    optimizer = torch.optim.AdamW(model.param_groups(OPTIM["weight_decay"]), lr=OPTIM["lr"],
                                  betas=tuple(OPTIM["betas"]), eps=OPTIM["eps"])
    losses, norms = [], []
    for _ in range(OPTIM["steps"]):
        optimizer.zero_grad()
        model(x, y).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIM["clip_norm"]).item())
        optimizer.step()
        with torch.no_grad():
            losses.append(model(x, y).item())
    tensors["out.losses"] = np.array(losses)
    tensors["out.grad_norms"] = np.array(norms)
    yield Golden(NAME, {"op": "gpt2", **MODEL, "batch": BATCH, "optim": OPTIM,
                        "decay": "weights of two dims only", "norm": "the mean loss's"}, tensors)
