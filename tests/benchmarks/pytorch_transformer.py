"""The PyTorch side of the speed comparison of encoder–decoders, and the batches and configuration of both sides.

  python3 pytorch_transformer.py prepare FOLDER   Multi30k, German to English, in $HEED_DATA: FOLDER/batches.safetensors, FOLDER/transformer.yaml
  OMP_NUM_THREADS=N OPENBLAS_NUM_THREADS=N python3 pytorch_transformer.py train FOLDER [--threads N] [--steps K]

The model is heed's `transformer`, eager: joint embeddings × √width, which are the head too, sinusoidal positions, post-norm, ReLU, dropout on
embeddings, attention weights and residual branches; label smoothing, Adam. Each batch is of one set of sentences with one padding on both
sides: of the middle of the text by length, so that little is padding, as where batches are cut by length. One JSON object a line.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

import pytorch_training

LAYERS, HEADS, WIDTH, DROPOUT, SMOOTHING, RATE = 3, 8, 256, 0.1, 0.1, 5e-4
BATCH, STEPS, DISTINCT = 128, 400, 50  # rows; batches in the file, so many that no measurement wants more; and how many of them differ
PAD, BEGIN, END, UNKNOWN = range(4)

CONFIG = """name: transformer
data: {{kind: batches, path: batches.safetensors, vocabulary: {vocabulary}}}
model: {{kind: transformer, layers: {layers}, heads: {heads}, width: {width}, context: {context}, dropout: {dropout}}}
train:
  steps: {steps}
  batch: {batch}
  optimizer: {{kind: adam, lr: {rate}}}
  label_smoothing: {smoothing}
"""


def pairs():
    """Pairs of sentences as token ids, END behind each, and how many ids there are. A word that stands once is UNKNOWN."""
    folder = pathlib.Path(os.environ.get("HEED_DATA", ".")) / "multi30k" / "tok"
    sides = [[line.split() for line in open(folder / f"train.lc.norm.tok.{language}", encoding="utf-8")] for language in ("de", "en")]
    counts = collections.Counter(word for side in sides for line in side for word in line)
    ids = {word: i + 4 for i, word in enumerate(sorted(word for word, count in counts.items() if count > 1))}
    return list(zip(*([[ids.get(word, UNKNOWN) for word in line] + [END] for line in side] for side in sides))), len(ids) + 4


def padded(rows, length, filling):
    return [row + [filling] * (length - len(row)) for row in rows]


def prepare(folder):
    rows, vocabulary = pairs()
    rows.sort(key=lambda pair: max(map(len, pair)))
    first = (len(rows) - DISTINCT * BATCH) // 2
    rows = rows[first:first + DISTINCT * BATCH]
    random.Random(1).shuffle(rows)
    longest = max(len(side) for pair in rows for side in pair)
    sources, targets = zip(*rows)
    tensors = {
        "inputs": padded([[BEGIN] + target[:-1] for target in targets], longest, PAD),
        "targets": padded(targets, longest, -1),
        "source": padded(sources, longest, PAD),
        "source_lengths": [len(source) for source in sources],
    }
    for name, values in tensors.items():
        tensor = torch.tensor(values).reshape(DISTINCT, BATCH, *([longest] if name != "source_lengths" else []))
        tensors[name] = tensor.repeat(STEPS // DISTINCT, *([1] * (tensor.dim() - 1)))
    folder.mkdir(parents=True, exist_ok=True)
    pytorch_training.save(folder / "batches.safetensors", tensors)
    (folder / "transformer.yaml").write_text(CONFIG.format(vocabulary=vocabulary, layers=LAYERS, heads=HEADS, width=WIDTH, context=longest, dropout=DROPOUT,
                                                           steps=STEPS, batch=BATCH, rate=RATE, smoothing=SMOOTHING))
    words = sum(len(side) for pair in rows for side in pair)
    print(json.dumps({"vocabulary": vocabulary, "context": longest, "batch": BATCH, "padding": 1 - words / (2 * longest * len(rows))}))


class Attention(nn.Module):
    """The three projections in one product where they are of one thing: keys and values, or queries too."""

    def __init__(self, of_itself):
        super().__init__()
        self.joint = nn.Linear(WIDTH, (3 if of_itself else 2) * WIDTH)
        self.query = None if of_itself else nn.Linear(WIDTH, WIDTH)
        self.output, self.dropout = nn.Linear(WIDTH, WIDTH), nn.Dropout(DROPOUT)

    def forward(self, x, memory, hidden):
        parts = self.joint(memory).split(WIDTH, dim=2)
        q, k, v = (y.view(y.shape[0], y.shape[1], HEADS, -1).transpose(1, 2) for y in (parts if self.query is None else (self.query(x), *parts)))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.shape[-1])
        weights = self.dropout(F.softmax(scores.masked_fill(hidden, -math.inf), dim=-1))
        return self.output((weights @ v).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, looks):
        super().__init__()
        self.attention, self.cross = Attention(True), Attention(False) if looks else None
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if looks else 2))
        self.up, self.down, self.dropout = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(DROPOUT)

    def forward(self, x, hidden, memory=None, memory_hidden=None):
        x = self.norms[0](x + self.dropout(self.attention(x, x, hidden)))
        if self.cross is not None:
            x = self.norms[1](x + self.dropout(self.cross(x, memory, memory_hidden)))
        return self.norms[-1](x + self.dropout(self.down(F.relu(self.up(x)))))


class Transformer(nn.Module):
    def __init__(self, vocabulary, context):
        super().__init__()
        self.token, self.dropout = nn.Embedding(vocabulary, WIDTH), nn.Dropout(DROPOUT)
        self.encoder = nn.ModuleList(Block(False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Block(True) for _ in range(LAYERS))
        angles = torch.arange(context)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], -1).reshape(context, WIDTH))
        self.register_buffer("future", torch.triu(torch.ones(context, context), 1) > 0)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def embedded(self, tokens):
        return self.dropout(self.token(tokens) * math.sqrt(WIDTH) + self.places[:tokens.shape[1]])

    def forward(self, source, source_lengths, inputs, targets):
        behind = (torch.arange(source.shape[1]) >= source_lengths[:, None])[:, None, None, :]
        memory = self.embedded(source)
        for block in self.encoder:
            memory = block(memory, behind)
        x = self.embedded(inputs)
        for block in self.decoder:
            x = block(x, self.future, memory, behind)
        logits = x @ self.token.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, label_smoothing=SMOOTHING)


def train(folder, threads, steps):
    torch.manual_seed(0)
    tensors = pytorch_training.load(folder / "batches.safetensors")
    vocabulary = int((folder / "transformer.yaml").read_text().split("vocabulary: ")[1].split("}")[0])
    _, batch, context = tensors["inputs"].shape
    model = Transformer(vocabulary, context)
    batch_of = lambda i: [tensors[name][i % STEPS] for name in ("source", "source_lengths", "inputs", "targets")]
    pytorch_training.measure(model, batch_of, batch * context, threads, steps, RATE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["prepare", "train"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    a = parser.parse_args()
    prepare(a.folder) if a.what == "prepare" else train(a.folder, a.threads, a.steps)


if __name__ == "__main__":
    main()
