#!/usr/bin/env python3
"""A GPT-2 in plain PyTorch (Debian's python3-torch): what heed's reader, writer and losses are held against.

    gpt2.py make FOLDER [key=value …]    random weights as a Hugging Face folder (config.json, model.safetensors) and ids.bin, tokens of a text
    gpt2.py loss FOLDER IDS STRIDE …     [{"float32": …, "float64": …}, …]: mean loss of the tokens by a Hugging Face folder, by stride

Keys of make: those of config.json, and dtype (float32, float64, float16, bfloat16), prefix (1: names of GPT2LMHeadModel), buffers (1: masks
too), tokens. Windows are of the context; all tokens but the first are predicted, each by the first window that has it."""
import json
import math
import struct
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

TYPES = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16, "U8": torch.uint8}
GELU_NEW = lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
ACTIVATIONS = {"gelu_new": GELU_NEW, "gelu": F.gelu, "relu": F.relu, "silu": F.silu}


def save_safetensors(path, tensors):
    names = {dtype: name for name, dtype in TYPES.items()}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        content = bytes(tensor.contiguous().view(torch.uint8).flatten().tolist())  # without numpy
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load_safetensors(path):
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(content[begin:end]), dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def logits(w, config, tokens):
    """transformers' GPT2LMHeadModel: w by the names of GPT2Model, weights [in, out]."""
    length, heads = len(tokens), config["n_head"]
    norm = lambda x, name: F.layer_norm(x, (x.shape[-1],), w[name + ".weight"], w[name + ".bias"], 1e-5)
    conv1d = lambda x, name: x @ w[name + ".weight"] + w[name + ".bias"]
    x = w["wte.weight"][tokens] + w["wpe.weight"][:length]
    for i in range(config["n_layer"]):
        q, k, v = (
            part.reshape(length, heads, -1).transpose(0, 1)
            for part in conv1d(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(config["n_embd"], -1)
        )
        scores = q @ k.transpose(1, 2)
        if config.get("scale_attn_weights", True):
            scores = scores / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf).softmax(-1)
        x = x + conv1d((weights @ v).transpose(0, 1).reshape(length, -1), f"h.{i}.attn.c_proj")
        hidden = ACTIVATIONS[config["activation_function"]](conv1d(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))
        x = x + conv1d(hidden, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w.get("lm_head.weight", w["wte.weight"]).T


def loss(w, config, tokens, stride):
    """Mean loss in windows of the context that begin so far apart: only what the window before has not predicted counts."""
    context = config["n_positions"]
    total, done, begin = 0.0, 0, 0
    while done < len(tokens) - 1:
        window = tokens[begin : begin + context + 1]
        losses = F.cross_entropy(logits(w, config, window[:-1]), window[1:], reduction="none")
        fresh = losses[done - begin :]
        total, done, begin = total + fresh.double().sum().item(), done + len(fresh), begin + stride
    return total / done


def losses(w, config, tokens, stride):
    with torch.no_grad():
        return {
            name: loss({key: tensor.to(dtype) for key, tensor in w.items()}, config, tokens, stride)
            for name, dtype in (("float32", torch.float32), ("float64", torch.float64))
        }


def make(folder, *keys):
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 3, "n_head": 4, "n_embd": 32, "n_positions": 24}
    config |= {"vocab_size": 97, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}
    given = {"dtype": "float32", "prefix": 0, "buffers": 0, "tokens": 100}
    for key, value in (pair.split("=", 1) for pair in keys):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            pass
        (given if key in given else config)[key] = value
    width, hidden = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    shapes = {"wte.weight": (config["vocab_size"], width), "wpe.weight": (config["n_positions"], width)}
    for i in range(config["n_layer"]):
        shapes |= {f"h.{i}.ln_1.weight": (width,), f"h.{i}.ln_1.bias": (width,)}
        shapes |= {f"h.{i}.attn.c_attn.weight": (width, 3 * width), f"h.{i}.attn.c_attn.bias": (3 * width,)}
        shapes |= {f"h.{i}.attn.c_proj.weight": (width, width), f"h.{i}.attn.c_proj.bias": (width,)}
        shapes |= {f"h.{i}.ln_2.weight": (width,), f"h.{i}.ln_2.bias": (width,)}
        shapes |= {f"h.{i}.mlp.c_fc.weight": (width, hidden), f"h.{i}.mlp.c_fc.bias": (hidden,)}
        shapes |= {f"h.{i}.mlp.c_proj.weight": (hidden, width), f"h.{i}.mlp.c_proj.bias": (width,)}
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], width)
    torch.manual_seed(1)
    dtype = getattr(torch, given["dtype"])
    w = {name: (torch.randn(shape, dtype=torch.float64) * 0.2 + (1 if "ln_" in name else 0)).to(dtype) for name, shape in shapes.items()}
    if given["buffers"]:
        mask = torch.ones(1, 1, config["n_positions"], config["n_positions"], dtype=torch.uint8)
        w |= {f"h.{i}.attn.{name}": mask for i in range(config["n_layer"]) for name in ("bias", "masked_bias")}
    if given["prefix"]:
        w = {name if name.startswith("lm_head") else "transformer." + name: tensor for name, tensor in w.items()}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_safetensors(folder / "model.safetensors", w)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    tokens = torch.randint(config["vocab_size"], (given["tokens"],)).tolist()
    (folder / "ids.bin").write_bytes(struct.pack(f"<{len(tokens)}i", *tokens))


if __name__ == "__main__":
    torch.set_num_threads(1)
    command, path, *rest = sys.argv[1:]
    if command == "make":
        make(path, *rest)
    else:
        config = json.loads((Path(path) / "config.json").read_text())
        weights = load_safetensors(Path(path) / "model.safetensors")
        weights = {name.removeprefix("transformer."): tensor for name, tensor in weights.items() if tensor.dtype != torch.uint8}
        ids = Path(rest[0]).read_bytes()
        tokens = torch.tensor(struct.unpack(f"<{len(ids) // 4}i", ids))
        print(json.dumps([losses(weights, config, tokens, int(stride)) for stride in rest[1:]]))
