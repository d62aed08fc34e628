"""What the PyTorch sides of training comparisons share: batches in a file that heed reads too, and the measurement of a step."""
import json
import resource
import statistics
import struct
import time

import torch


def save(path, tensors):
    """int64 tensors by name, as a safetensors file."""
    header, content = {}, b""
    for name, tensor in tensors.items():
        data = tensor.numpy().tobytes()
        header[name] = {"dtype": "I64", "shape": list(tensor.shape), "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + content)


def load(path):
    """The tensors of save()'s file."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    content = bytearray(data[8 + length:])
    tensors = {}
    for name, about in json.loads(data[8:8 + length]).items():
        begin, end = about["data_offsets"]
        tensors[name] = torch.frombuffer(content, dtype=torch.int64, count=(end - begin) // 8, offset=begin).reshape(about["shape"])
    return tensors


def measure(model, batch_of, tokens, threads, steps, rate):
    """Prints milliseconds a step, after a few that warm up. batch_of(i): the arguments of step i; tokens: that it reads."""
    torch.set_num_threads(threads)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    samples, losses = [], []
    for i in range(steps + max(2, steps // 10)):
        begin = time.perf_counter()
        loss = model(*batch_of(i))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        samples.append(1e3 * (time.perf_counter() - begin))
        losses.append(loss.item())
    samples = samples[-steps:]
    median = statistics.median(samples)
    print(json.dumps({"framework": "pytorch " + torch.__version__, "what": "train", "threads": threads, "median_ms": median, "min_ms": min(samples),
                      "max_ms": max(samples), "tokens_per_second": 1e3 * tokens / median, "first_loss": losses[0], "last_loss": losses[-1],
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
