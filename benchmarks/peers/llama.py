"""Llama in PyTorch, with the parameter names of nn/models/llama.

Rotary positions, pre-RMSNorm, grouped key and value heads, SwiGLU, no biases, no dropout. The gate
and what it lets through are one matrix, and so are queries, keys and values.
B batch, T sequence, C channels, H heads, G heads of keys and values, D head dim, V vocabulary.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


def frequencies(head_dim, theta, scaling=None):
    """Of each pair of channels, stretched as Llama 3 does."""
    omega = theta ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    if scaling is None:
        return omega
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_context"] * omega / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * omega / scaling["factor"] + kept * omega


def rotate(x, theta, scaling=None):
    """x [B, T, H, D]: channels i and i + D / 2 turn by t · frequency i."""
    T, D = x.shape[1], x.shape[3]
    angles = torch.arange(T, dtype=torch.float64)[:, None] * frequencies(D, theta, scaling)
    cos, sin = (f(angles).to(x.dtype)[:, None, :] for f in (torch.cos, torch.sin))
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class RmsNorm(nn.Module):
    def __init__(self, channels, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self, channels, heads, kv_heads, theta, scaling):
        super().__init__()
        self.heads, self.kv_heads, self.theta, self.scaling = heads, kv_heads, theta, scaling
        self.qkv = nn.Linear(channels, channels // heads * (heads + 2 * kv_heads), bias=False)
        self.proj = nn.Linear(channels, channels, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        H, G = self.heads, self.kv_heads
        q, k, v = self.qkv(x).view(B, T, H + 2 * G, C // H).split([H, G, G], dim=2)
        q, k = rotate(q, self.theta, self.scaling), rotate(k, self.theta, self.scaling)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                           is_causal=True, enable_gqa=H != G)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Mlp(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.gate_up = nn.Linear(channels, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, channels, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, channels, heads, kv_heads, hidden, theta, scaling, eps):
        super().__init__()
        self.norm1 = RmsNorm(channels, eps)
        self.attn = Attention(channels, heads, kv_heads, theta, scaling)
        self.norm2 = RmsNorm(channels, eps)
        self.mlp = Mlp(channels, hidden)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Llama(nn.Module):
    def __init__(self, layers, heads, kv_heads, channels, hidden, vocab, theta=10000, scaling=None,
                 eps=1e-5, tied=False):
        super().__init__()
        self.wte = nn.Embedding(vocab, channels)
        self.blocks = nn.ModuleList(Block(channels, heads, kv_heads, hidden, theta, scaling, eps)
                                    for _ in range(layers))
        self.normf = RmsNorm(channels, eps)
        self.head = nn.Linear(channels, vocab, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def logits(self, tokens):
        x = self.wte(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.normf(x))

    def forward(self, tokens, targets, reduction="mean"):
        """Cross entropy of tokens [B, T] against targets [B, T]; logits never in bf16."""
        logits = self.logits(tokens)
        if logits.dtype == torch.bfloat16:
            logits = logits.float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1,
                               reduction=reduction)


def hugging_face_weights(llama):
    """The state dict of transformers' LlamaForCausalLM."""
    weights = {"model.embed_tokens.weight": llama.wte.weight,
               "model.norm.weight": llama.normf.weight, "lm_head.weight": llama.head.weight}
    for i, block in enumerate(llama.blocks):
        to = f"model.layers.{i}."
        a, D = block.attn, block.attn.qkv.weight.shape[1] // block.attn.heads
        q, k, v = a.qkv.weight.split([a.heads * D, a.kv_heads * D, a.kv_heads * D])
        gate, up = block.mlp.gate_up.weight.chunk(2)
        weights |= {to + "input_layernorm.weight": block.norm1.weight,
                    to + "post_attention_layernorm.weight": block.norm2.weight,
                    to + "self_attn.q_proj.weight": q, to + "self_attn.k_proj.weight": k,
                    to + "self_attn.v_proj.weight": v, to + "self_attn.o_proj.weight": a.proj.weight,
                    to + "mlp.gate_proj.weight": gate, to + "mlp.up_proj.weight": up,
                    to + "mlp.down_proj.weight": block.mlp.down.weight}
    return weights
