"""Optimizers over five steps, and clipping of a global norm; PyTorch's own, in f64."""
import numpy as np
import torch

from goldens.files import Golden, draw

STEPS = 5


def optimizer_golden(name, case, make):
    """`in.param`, `in.grads` [steps, ...]; `out.param` [steps, ...] after each step; the last state."""
    start = draw(name, "param", shape=(37, 5))
    grads = draw(name, "grads", shape=(STEPS, 37, 5))
    grads[2, 0] = 0  # a step without gradient still moves by its momentum
    param = torch.nn.Parameter(torch.from_numpy(start).double())
    optimizer = make([param])
    after = []
    for grad in grads:
        param.grad = torch.from_numpy(grad).double()
        optimizer.step()
        after.append(param.detach().numpy().copy())
    tensors = {"in.param": start, "in.grads": grads, "out.param": np.stack(after)}
    for key, value in optimizer.state[param].items():
        if torch.is_tensor(value) and value.shape == param.shape:
            tensors[f"out.{key}"] = value.numpy().copy()
    return Golden(name, case, tensors)


def optimizers():
    for name, decay in [("adamw", 0.0), ("adamw_decay", 0.1)]:
        case = {"op": "adamw", "lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": decay}
        yield optimizer_golden(name, case, lambda params, decay=decay: torch.optim.AdamW(
            params, lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=decay))
    for name, momentum, nesterov in [("sgd", 0.0, False), ("sgd_momentum", 0.9, False),
                                     ("sgd_nesterov", 0.9, True)]:
        case = {"op": "sgd", "lr": 1e-2, "momentum": momentum}
        if nesterov:
            case["nesterov"] = True
        yield optimizer_golden(name, case, lambda params, momentum=momentum, nesterov=nesterov:
                               torch.optim.SGD(params, lr=1e-2, momentum=momentum,
                                               nesterov=nesterov))
    yield optimizer_golden("lion", {"op": "lion", "lr": 1e-2, "betas": [0.9, 0.99],
                                    "weight_decay": 0.1},
                           lambda params: Lion(params, 1e-2, (0.9, 0.99), 0.1))


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, program 1."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(torch.sign(beta1 * m + (1 - beta1) * p.grad) * group["lr"])
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def clips():
    """Scale = min(1, max_norm / (norm + 1e-6)), the norm over all tensors together."""
    for name, p, max_norm in [("clip_norm2", 2.0, 1.0), ("clip_norm2_below", 2.0, 1e3),
                              ("clip_norminf", float("inf"), 0.5)]:
        grads = [draw(name, i, shape=shape) for i, shape in enumerate([(7, 5), (13,), (2, 3, 4)])]
        params = [torch.nn.Parameter(torch.zeros(g.shape, dtype=torch.float64)) for g in grads]
        for param, grad in zip(params, grads):
            param.grad = torch.from_numpy(grad).double()
        norm = torch.nn.utils.clip_grad_norm_(params, max_norm, norm_type=p)
        tensors = {"out.norm": norm.numpy()}
        for i, (param, grad) in enumerate(zip(params, grads)):
            tensors[f"in.{i}"] = grad
            tensors[f"out.{i}"] = param.grad.numpy()
        yield Golden(name, {"op": "clip_norm", "p": str(p), "max_norm": max_norm, "eps": 1e-6},
                     tensors)


def optim_cases():
    yield from optimizers()
    yield from clips()
