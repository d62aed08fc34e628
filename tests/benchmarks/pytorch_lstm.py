"""The PyTorch side of the speed comparison of recurrent encoder–decoders, and the batches and configuration of both sides.

  python3 pytorch_lstm.py prepare FOLDER          FOLDER/batches.safetensors, FOLDER/lstm.yaml: random words
  OMP_NUM_THREADS=N OPENBLAS_NUM_THREADS=N python3 pytorch_lstm.py train FOLDER [--threads N] [--steps K]

The model is heed's `recurrent_seq2seq` of one LSTM layer a side, eager, with Luong's attention over all steps at once, or without: then the
decoder starts from tanh of a map of the encoder's last state. Both sides read 64 rows of 20 tokens; PyTorch's LSTM is nn.LSTM, which runs a
whole sequence in one call of its library. Adam. One JSON object a line.
"""
import argparse
import json
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

import pytorch_training

EMBEDDING, WIDTH, BATCH, LENGTH, VOCABULARY, RATE = 256, 512, 64, 20, 8000, 5e-4
STEPS, DISTINCT = 400, 50  # batches in the file, so many that no measurement wants more; and how many of them differ

CONFIG = """name: lstm
data: {{kind: batches, path: batches.safetensors, vocabulary: {vocabulary}}}
model: {{kind: recurrent_seq2seq, cell: lstm, width: {width}, embedding: {embedding}, context: {length}, attention: {attention}}}
train:
  steps: {steps}
  batch: {batch}
  optimizer: {{kind: adam, lr: {rate}}}
"""


def prepare(folder, attention):
    torch.manual_seed(1)
    words = lambda: torch.randint(VOCABULARY, (DISTINCT, BATCH, LENGTH)).repeat(STEPS // DISTINCT, 1, 1)
    inputs = words()
    tensors = {"inputs": inputs, "targets": inputs.roll(-1, 2), "source": words(),
               "source_lengths": torch.full((STEPS, BATCH), LENGTH, dtype=torch.int64)}
    folder.mkdir(parents=True, exist_ok=True)
    pytorch_training.save(folder / "batches.safetensors", tensors)
    (folder / "lstm.yaml").write_text(CONFIG.format(vocabulary=VOCABULARY, width=WIDTH, embedding=EMBEDDING, length=LENGTH, attention=attention,
                                                    steps=STEPS, batch=BATCH, rate=RATE))
    print(json.dumps({"vocabulary": VOCABULARY, "length": LENGTH, "batch": BATCH, "attention": attention}))


class Seq2seq(nn.Module):
    def __init__(self, attends):
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, EMBEDDING), nn.Embedding(VOCABULARY, EMBEDDING)
        self.encoder, self.decoder = nn.LSTM(EMBEDDING, WIDTH, batch_first=True), nn.LSTM(EMBEDDING, WIDTH, batch_first=True)
        self.bridge = None if attends else nn.Linear(WIDTH, WIDTH)
        self.matrix = nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH) if attends else None
        self.combine = nn.Linear(2 * WIDTH, WIDTH, bias=False) if attends else None
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, source, inputs, targets):
        memory, (h, c) = self.encoder(self.source(source))
        if self.bridge is not None:
            h = torch.tanh(self.bridge(h))
            c = torch.zeros_like(h)
        top, _ = self.decoder(self.target(inputs), (h, c))
        if self.combine is not None:
            weights = F.softmax((top @ self.matrix) @ memory.transpose(1, 2), dim=-1)
            top = torch.tanh(self.combine(torch.cat([weights @ memory, top], -1)))
        return F.cross_entropy(self.output(top).flatten(0, 1), targets.flatten())


def train(folder, threads, steps):
    torch.manual_seed(0)
    tensors = pytorch_training.load(folder / "batches.safetensors")
    attends = "attention: none" not in (folder / "lstm.yaml").read_text()
    model = Seq2seq(attends)
    batch_of = lambda i: [tensors[name][i % STEPS] for name in ("source", "inputs", "targets")]
    pytorch_training.measure(model, batch_of, BATCH * LENGTH, threads, steps, RATE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["prepare", "train"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--attention", choices=["none", "luong"], default="luong")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    a = parser.parse_args()
    prepare(a.folder, a.attention) if a.what == "prepare" else train(a.folder, a.threads, a.steps)


if __name__ == "__main__":
    main()
