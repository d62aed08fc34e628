"""heed beside PyTorch: runs both, alternating, and prints tables of ratios. Called by compare.sh."""
import argparse
import datetime
import functools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
HEED = HERE.parent.parent / "build" / "release" / "heed"
PYTORCH = HERE / "pytorch_gpt.py"
TRIAL = HERE / "pytorch_trial.py"
ABLATION = HERE.parent.parent / "configs" / "ablations" / "grammar.yaml"
OPENBLAS = pathlib.Path("/usr/lib/x86_64-linux-gnu/openblas-openmp")


@functools.cache
def kernels():
    """The kernels that heed has from OpenBLAS. By itself OpenBLAS chooses poor ones for a processor younger than itself; PyTorch is to have these."""
    row = rows([HEED, "bench", "gpt", "forward", "--size", "tiny", "--threads", 1, "--seconds", 0.01, "--json"])[0]
    return re.search(r"(\w+)(?: MAX_THREADS=\d+)?$", row["library"]).group(1)


def pinned(threads):
    """PyTorch at its best: its BLAS and its own pool with as many threads, and OpenBLAS's OpenMP flavour."""
    settings = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "OPENBLAS_CORETYPE": kernels()}
    if OPENBLAS.is_dir():
        settings["LD_LIBRARY_PATH"] = str(OPENBLAS)
    return settings


def rows(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def heed(what, size, threads, *options):
    return rows([HEED, "bench", "gpt", what, "--size", size, "--threads", threads, "--seconds", 3, "--json", *options])[0]


def pytorch(what, size, threads, *options):
    return rows([sys.executable, PYTORCH, size, "--threads", threads, "--what", what, *options], env=pinned(threads))[0]


def processes(rounds):
    """How many of each side, by turns: two say too little on a machine with neighbours, and on two threads, where PyTorch is bimodal, its best
    of five counts."""
    return max(rounds, 5)


class Rounds:
    """The median over rounds of a figure of each side, or the best."""

    def __init__(self):
        self.figures = {}

    def add(self, name, value):
        self.figures.setdefault(name, []).append(value)

    def of(self, name):
        return statistics.median(self.figures[name])

    def best(self, name, pick=min):
        return pick(self.figures[name])


def train(sizes, threads, rounds):
    print("## A training step (ms): forward, backward, clipping, AdamW\n")
    print("| size | threads | heed, OpenBLAS | heed, oneDNN | PyTorch | ratio | of peak | heed, bfloat16 | PyTorch, autocast | ratios "
          "| heed MB | PyTorch MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for count in threads:
        for size in sizes:
            seen = Rounds()
            for _ in range(processes(rounds)):
                a = heed("train", size, count)
                b = pytorch("train", size, count)
                c = heed("train", size, count, "--products", "onednn")
                d = heed("train", size, count, "--precision", "bfloat16")
                e = pytorch("train", size, count, "--bfloat16")
                for name, row in zip("abcde", (a, b, c, d, e)):
                    seen.add(name, row["median_ms"])
                seen.add("share", a["share_of_peak"])
                seen.add("heed MB", a["peak_mb"])
                seen.add("PyTorch MB", b["peak_mb"] * 1.048576)  # its script counts in 2^20 bytes
            theirs = seen.of("b") if count == 1 else seen.best("b")
            a, c, d, e = (seen.of(name) for name in "acde")
            print(f"| {size} | {count} | {a:.2f} | {c:.2f} | {theirs:.2f} | {theirs / a:.2f}, {theirs / c:.2f} | {seen.of('share'):.0%} "
                  f"| {d:.2f} | {e:.2f} | {theirs / d:.2f}, {e / d:.2f} | {seen.of('heed MB'):.0f} | {seen.of('PyTorch MB'):.0f} |", flush=True)
    print("\nRatios: PyTorch's time over heed's (OpenBLAS, oneDNN); of bfloat16: PyTorch's float32 and its autocast over heed's bfloat16.\n")


def sample(sizes, threads, rounds):
    print("## Sampling with the cache of keys and values (tokens a second)\n")
    print("| size | threads | heed | PyTorch | ratio | heed, bfloat16 | PyTorch, bfloat16 | ratios |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for count in threads:
        for size in sizes:
            seen = Rounds()
            for _ in range(processes(rounds)):
                for name, row in (("heed", heed("sample", size, count)), ("PyTorch", pytorch("sample", size, count)),
                                  ("heed bfloat16", heed("sample", size, count, "--precision", "bfloat16")),
                                  ("PyTorch bfloat16", pytorch("sample", size, count, "--bfloat16"))):
                    seen.add(name, row["tokens_per_second"])
            theirs, rounded = ((seen.of(name) if count == 1 else seen.best(name, max)) for name in ("PyTorch", "PyTorch bfloat16"))
            ours, fast = seen.of("heed"), seen.of("heed bfloat16")
            print(f"| {size} | {count} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.1f} | {fast:.0f} | {rounded:.0f} "
                  f"| {fast / theirs:.1f}, {fast / rounded:.1f} |", flush=True)
    print("\nRatios of bfloat16: heed's over PyTorch's float32 and over its bfloat16.\n")


def attention(rounds):
    print("## Attention alone, forward and backward, one thread, causal, B=12 H=4 T=256 d=64 (ms)\n")
    print("| score | heed | PyTorch | ratio |\n| --- | --- | --- | --- |")
    seen = Rounds()
    for _ in range(rounds):
        for score in ("scaled_dot", "additive"):
            for row in rows([HEED, "bench", "attention", score, "--threads", 1, "--causal", "--json"]):
                plain = row["align"] == "softmax" and row["read"] == "soft" and row["position"] == "none"
                if plain and row["score"] == score and row["what"].endswith("backward"):
                    seen.add("heed " + score, row["median_ms"])
        for row in rows([sys.executable, PYTORCH, "tiny", "--what", "attention"], env=pinned(1)):
            _, score, shape = row["what"].split()
            if shape == "T256":
                seen.add("PyTorch " + score, row["median_ms"])
    for score in ("scaled_dot", "additive"):
        ours, theirs = seen.of("heed " + score), seen.of("PyTorch " + score)
        print(f"| {score} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.1f} |", flush=True)
    print()


def trials(rounds):
    print("## A trial of configs/ablations/attention.yaml, one thread, start-up included (s)\n")
    print("| attention | heed | PyTorch | ratio |\n| --- | --- | --- | --- |")
    for name in ("scaled", "additive"):
        seen = Rounds()
        for _ in range(rounds if name == "scaled" else 1):  # PyTorch's additive one takes minutes
            with tempfile.TemporaryDirectory() as folder:
                for side, command, settings in (
                        ("heed", [HEED, "run", ABLATION, f"model.attention={name}", "--threads", "1", "--output", folder], None),
                        ("PyTorch", [sys.executable, TRIAL, name], pinned(1))):
                    begin = time.perf_counter()
                    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=settings)
                    seen.add(side, time.perf_counter() - begin)
        print(f"| {name} | {seen.of('heed'):.2f} | {seen.of('PyTorch'):.2f} | {seen.of('PyTorch') / seen.of('heed'):.1f} |", flush=True)
    print()


def llmc(sizes, threads, rounds, checkout):
    print("## A training step beside llm.c's (ms): `gcc -Ofast -march=native -fopenmp`, as its Makefile has them\n")
    print("| size | threads | heed | llm.c | ratio |\n| --- | --- | --- | --- | --- |")
    steps = {"tiny": 40, "nano": 9, "small": 3}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "llmc"
        subprocess.run(["gcc", "-Ofast", "-march=native", "-fopenmp", "-DOMP", "-w", "-I", checkout, HERE / "llmc.c", "-o", program, "-lm"], check=True)
        for count in threads:
            for size in sizes:
                seen = Rounds()
                for _ in range(rounds):
                    seen.add("heed", heed("train", size, count)["median_ms"])
                    seen.add("llm.c", rows([program, size, steps[size]], env=pinned(count))[0]["median_ms"])
                print(f"| {size} | {count} | {seen.of('heed'):.2f} | {seen.of('llm.c'):.2f} | {seen.of('llm.c') / seen.of('heed'):.1f} |", flush=True)
    print()


def machine():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown processor"


def main():
    topics = ["train", "sample", "attention", "trials", "llmc"]
    parser = argparse.ArgumentParser(prog="compare.sh")
    parser.add_argument("--sizes", nargs="+", default=["tiny", "nano", "small"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=topics, default=topics)
    chosen = parser.parse_args()
    print(f"{machine()}, {os.cpu_count()} cores, OpenBLAS's kernels for {kernels()}, {datetime.date.today()}\n")
    if "train" in chosen.only:
        train(chosen.sizes, chosen.threads, chosen.rounds)
    if "sample" in chosen.only:
        sample(chosen.sizes, chosen.threads, chosen.rounds)
    if "attention" in chosen.only:
        attention(chosen.rounds)
    if "trials" in chosen.only:
        trials(chosen.rounds)
    if "llmc" in chosen.only:
        checkout = os.environ.get("LLMC", "")
        if (pathlib.Path(checkout) / "train_gpt2.c").is_file():
            llmc(chosen.sizes, chosen.threads, chosen.rounds, checkout)
        else:
            print(f"llm.c is left out: LLMC names no checkout of it ({checkout or 'it is not set'})")


main()
