# SPDX-License-Identifier: Apache-2.0
"""The small language model of train.py. `fault` of a block is what is wrong in its forward."""
import torch
from torch import nn

TOKENS, WIDTH, BLOCKS = 48, 32, 2


class Attention(nn.Module):
    """The bias of its keys has no gradient but rounding."""

    def __init__(self, fused):
        super().__init__()
        if fused:
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        else:
            self.queries, self.keys, self.values = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.fused, self.proj = fused, nn.Linear(WIDTH, WIDTH)

    def forward(self, x, scale=1):
        q, k, v = self.qkv(x).chunk(3, -1) if self.fused else (self.queries(x), self.keys(x), self.values(x))
        q = q * scale if scale != 1 else q
        q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in (q, k, v))
        return self.proj(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Experts(nn.Module):
    """Each sees every token, and counts as much as the gate says."""

    def __init__(self, count):
        super().__init__()
        self.gate = nn.Linear(WIDTH, count, bias=False)
        self.up, self.down = (nn.Parameter(0.2 * torch.randn(count, *shape)) for shape in ((WIDTH, 2 * WIDTH), (2 * WIDTH, WIDTH)))

    def forward(self, x):
        tokens, shares, up, down = x.flatten(0, -2), self.gate(x).softmax(-1).flatten(0, -2), self.up, self.down
        if hasattr(up, "device_mesh"):
            from torch.distributed.tensor import DTensor, Replicate
            tokens, shares = (DTensor.from_local(t, up.device_mesh, [Replicate()]) for t in (tokens, shares))
        made = torch.bmm(torch.tanh(torch.bmm(tokens.unsqueeze(0).expand(up.shape[0], -1, -1), up)), down)
        made = (made * shares.t().unsqueeze(-1)).sum(0)
        return (made.full_tensor() if hasattr(made, "full_tensor") else made).view(x.shape)


class Block(nn.Module):
    def __init__(self, dropout, attention, experts):
        super().__init__()
        if attention:
            self.first, self.attention = nn.LayerNorm(WIDTH), Attention(attention == "fused")
        self.norm = nn.LayerNorm(WIDTH)
        if experts:
            self.experts = Experts(experts)
        else:
            self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.fault = ""  # of this step

    def forward(self, x):
        if hasattr(self, "attention"):
            x = x + self.attention(self.first(x), 1.1 if self.fault == "scores" else 1)
        made = self.norm(x)
        made = self.dropout(self.experts(made) if hasattr(self, "experts") else self.down(torch.tanh(self.up(made) * (1.1 if self.fault == "activation" else 1))))
        if self.fault != "no_residual":
            made = x + made
        return made.flip(0) if self.fault == "other_samples" else made


class Net(nn.Module):
    def __init__(self, tied, dropout, attention, experts, momentum=0.0):
        super().__init__()
        self.words = nn.Embedding(TOKENS, WIDTH)
        if momentum:
            self.batchnorm = nn.BatchNorm1d(WIDTH, momentum=momentum)
        self.blocks = nn.ModuleList(Block(dropout, attention, experts) for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS, bias=False)
        if tied:
            self.head.weight = self.words.weight
        for p in self.parameters():
            p.data.add_(0.05 * torch.randn(p.shape))

    def forward(self, ids, labels=None):
        x = self.words(ids)
        if hasattr(self, "batchnorm"):
            x = self.batchnorm(x.transpose(1, 2)).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        made = self.head(self.norm(x))
        return made if labels is None else {"loss": nn.functional.cross_entropy(made.float().reshape(-1, TOKENS), labels.reshape(-1)), "logits": made}
