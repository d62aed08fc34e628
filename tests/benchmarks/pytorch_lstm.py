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
import resource
import statistics
import struct
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

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
    header, content = {}, b""
    for name, tensor in tensors.items():
        data = tensor.numpy().tobytes()
        header[name] = {"dtype": "I64", "shape": list(tensor.shape), "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "batches.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + content)
    (folder / "lstm.yaml").write_text(CONFIG.format(vocabulary=VOCABULARY, width=WIDTH, embedding=EMBEDDING, length=LENGTH, attention=attention,
                                                    steps=STEPS, batch=BATCH, rate=RATE))
    print(json.dumps({"vocabulary": VOCABULARY, "length": LENGTH, "batch": BATCH, "attention": attention}))


def load(folder):
    """The tensors of prepare()'s file, and whether its configuration attends."""
    data = (folder / "batches.safetensors").read_bytes()
    length, = struct.unpack("<Q", data[:8])
    content = bytearray(data[8 + length:])
    tensors = {}
    for name, about in json.loads(data[8:8 + length]).items():
        begin, end = about["data_offsets"]
        tensors[name] = torch.frombuffer(content, dtype=torch.int64, count=(end - begin) // 8, offset=begin).reshape(about["shape"])
    return tensors, "attention: none" not in (folder / "lstm.yaml").read_text()


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
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    tensors, attends = load(folder)
    model = Seq2seq(attends)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    samples, losses = [], []
    for i in range(steps + max(2, steps // 10)):
        begin = time.perf_counter()
        loss = model(*(tensors[name][i % STEPS] for name in ("source", "inputs", "targets")))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        samples.append(1e3 * (time.perf_counter() - begin))
        losses.append(loss.item())
    samples = samples[-steps:]  # after a few that warm up
    median = statistics.median(samples)
    print(json.dumps({"framework": "pytorch " + torch.__version__, "what": "train", "threads": threads, "median_ms": median, "min_ms": min(samples),
                      "max_ms": max(samples), "tokens_per_second": 1e3 * BATCH * LENGTH / median, "first_loss": losses[0], "last_loss": losses[-1],
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


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
