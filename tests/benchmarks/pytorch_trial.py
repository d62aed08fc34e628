"""A trial of configs/ablations/attention.yaml as one would write it in PyTorch: the same model, steps, schedule and evaluations, start to end.

  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 pytorch_trial.py scaled|additive

Its tokens are random numbers, which cost less than heed's sentences, and it records no probes.
"""
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, VOCABULARY = 2, 2, 64, 128, 8, 112
STEPS, WARMUP, HIGH, LOW, EVERY, VALIDATION = 400, 40, 3e-3, 3e-4, 100, 34


class Attention(nn.Module):
    def __init__(self, score):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.vector = nn.Parameter(torch.randn(HEADS, 1, 1, WIDTH // HEADS) * 0.02) if score == "additive" else None
        distance = torch.arange(CONTEXT)[:, None] - torch.arange(CONTEXT)
        slopes = 2.0 ** (-8.0 / HEADS * torch.arange(1, HEADS + 1))
        bias = -slopes[:, None, None] * distance  # ALiBi
        self.register_buffer("bias", bias.masked_fill(distance < 0, -math.inf))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, HEADS, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        if self.vector is None:
            scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        else:
            scores = (torch.tanh(q[:, :, :, None] + k[:, :, None]) * self.vector).sum(-1)
        weights = F.softmax(scores + self.bias, -1)
        return self.output((weights @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, score):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(WIDTH), Attention(score), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, score):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block(score) for _ in range(LAYERS))), nn.LayerNorm(WIDTH)

    def forward(self, tokens, targets):
        x = self.norm(self.blocks(self.token(tokens)))
        return F.cross_entropy((x @ self.token.weight.T).flatten(0, 1), targets.flatten())


def learning_rate(step):
    if step < WARMUP:
        return HIGH * (step + 1) / WARMUP
    return LOW + (HIGH - LOW) * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def batch():
    tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1))
    return tokens[:, :-1], tokens[:, 1:]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = GPT(sys.argv[1])
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=HIGH, betas=(0.9, 0.99))
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        loss = model(*batch())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % EVERY == 0:
            with torch.no_grad():
                print(step + 1, loss.item(), sum(model(*batch()).item() for _ in range(VALIDATION)) / VALIDATION)


if __name__ == "__main__":
    main()
