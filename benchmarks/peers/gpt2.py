"""The GPT-2 that every comparison trains, in PyTorch, with the parameter names of nn/models/gpt2.

Learned positions, pre-LayerNorm (eps 1e-5), biases everywhere but the head, GELU tanh, causal
attention, final LayerNorm, head tied to the token embedding, no dropout.
B batch, T sequence, C channels, V vocabulary.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Mlp(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.up = nn.Linear(channels, 4 * channels)
        self.down = nn.Linear(4 * channels, channels)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(channels)
        self.attn = Attention(channels, heads)
        self.ln2 = nn.LayerNorm(channels)
        self.mlp = Mlp(channels)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Gpt2(nn.Module):
    def __init__(self, layers, heads, channels, vocab, context):
        super().__init__()
        self.wte = nn.Embedding(vocab, channels)
        self.wpe = nn.Embedding(context, channels)
        self.blocks = nn.ModuleList(Block(channels, heads) for _ in range(layers))
        self.lnf = nn.LayerNorm(channels)

    def forward(self, tokens, targets, reduction="mean"):
        """Cross entropy of tokens [B, T] against targets [B, T]; logits never in bf16."""
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.lnf(x), self.wte.weight)
        if logits.dtype == torch.bfloat16:
            logits = logits.float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1,
                               reduction=reduction)

    def init_weights(self, seed, scale_residual=False):
        """N(0, 0.02) for matrices, 0 for biases; residual projections / sqrt(2 layers) if asked."""
        torch.manual_seed(seed)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                std = 0.02
                if scale_residual and name.endswith(("proj.weight", "down.weight")):
                    std /= (2 * len(self.blocks)) ** 0.5
                nn.init.normal_(p, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def param_groups(self, weight_decay):
        """Decay for matrices only."""
        params = list(self.parameters())
        return [{"params": [p for p in params if p.dim() >= 2], "weight_decay": weight_decay},
                {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}]
