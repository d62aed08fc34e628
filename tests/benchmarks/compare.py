"""heed beside PyTorch: runs both, alternating, and prints tables of ratios. Called by compare.sh."""
import argparse
import csv
import datetime
import functools
import json
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
HEED = pathlib.Path(os.environ.get("HEED", HERE.parent.parent / "build" / "release" / "heed"))
PYTHON = shlex.split(os.environ.get("PYTORCH", sys.executable))  # with PyTorch
PYTORCH = HERE / "pytorch_gpt.py"
TRANSFORMER = HERE / "pytorch_transformer.py"
LSTM = HERE / "pytorch_lstm.py"
TRIAL = HERE / "pytorch_trial.py"
ABLATION = HERE.parent.parent / "configs" / "ablations" / "grammar.yaml"
OPENBLAS = pathlib.Path(f"/usr/lib/{platform.machine()}-linux-gnu/openblas-openmp")
# Both sides held to AVX2: heed's build for any x86-64 with it, and what OpenBLAS, PyTorch and its oneDNN are told.
AVX2 = {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2"}


class Unmeasured(Exception):
    """A side cannot be measured on this machine, and why."""


@functools.cache
def kernels():
    """The kernels that heed has from OpenBLAS. By itself OpenBLAS chooses poor ones for a processor younger than itself; PyTorch is to have these."""
    row = rows([HEED, "bench", "gpt", "forward", "--size", "tiny", "--threads", 1, "--seconds", 0.01, "--json"])[0]
    found = re.search(r"(\w+)(?: MAX_THREADS=\d+)?, factors in", row["library"])
    if found is None:
        sys.exit(f"compare.py: which kernels are those of '{row['library']}'?")
    return found.group(1)


def pinned(threads):
    """PyTorch at its best: its BLAS and its own pool with as many threads, and OpenBLAS's OpenMP flavour."""
    settings = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    if "--system" in PYTHON:
        return settings  # its OpenBLAS is younger, and the only one there
    settings["OPENBLAS_CORETYPE"] = kernels()
    if OPENBLAS.is_dir():
        settings["LD_LIBRARY_PATH"] = str(OPENBLAS)
    return settings


def check_products():
    """Prints what PyTorch chose for products and their rate; refuses one that is held back."""
    for name in (*AVX2, "MKL_ENABLE_INSTRUCTIONS"):
        if name in os.environ:
            sys.exit(f"compare.py: {name} in the environment may hold PyTorch back: unset {name}")
    ours = rows([HEED, "bench", "gpt", "forward", "--size", "nano", "--threads", 1, "--seconds", 0.5, "--json"])[0]
    peak = ours["peak_gflops"]
    theirs = rows([*PYTHON, PYTORCH, "tiny", "--what", "product"], env=pinned(1))[0]
    print(f"{theirs['framework']}: kernels for {theirs['kernels']}, products at {theirs['gflops']:.0f} GFLOP/s; heed's at {peak:.0f}\n", flush=True)
    if theirs["gflops"] < peak / 2:
        sys.exit("compare.py: these are not PyTorch's best kernels. Debian's wants libopenblas0-openmp, and /sys in a root")
    return theirs["framework"]


def rows(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Unmeasured(f"{' '.join(map(str, command))}: {(done.stderr.strip() or f'exit {done.returncode}').splitlines()[-1]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def heed(what, size, threads, *options):
    return rows([HEED, "bench", "gpt", what, "--size", size, "--threads", threads, "--seconds", 3, "--json", *options])[0]


def pytorch(what, size, threads, *options):
    return rows([*PYTHON, PYTORCH, size, "--threads", threads, "--what", what, *options], env=pinned(threads))[0]


class Rounds:
    """The median over rounds of a figure of each side, or the best; None for a side that cannot be measured here."""

    said = set()
    table = [["task", "program", "round", "figure"]]  # all of them, for heed judge

    def __init__(self, task):
        self.task, self.figures = task, {}

    def add(self, name, value):
        self.figures.setdefault(name, []).append(value)
        Rounds.table.append([self.task, name, len(self.figures[name]), value])

    def measure(self, name, run, figure="median_ms"):
        """Adds a figure of what `run` returns; what cannot be measured is left out, and said once."""
        try:
            row = run()
        except Unmeasured as reason:
            if name not in Rounds.said:
                print(f"left out: {name}: {reason}", file=sys.stderr)
            Rounds.said.add(name)
            return None
        self.add(name, row[figure])
        return row

    def of(self, name):
        return statistics.median(self.figures[name]) if name in self.figures else None

    def best(self, name, pick=min):
        return pick(self.figures[name]) if name in self.figures else None


def number(value, pattern="{:.2f}"):
    return "left out" if value is None else pattern.format(value)


def ratio(ours, theirs, pattern="{:.2f}"):
    return "" if ours is None or theirs is None else pattern.format(theirs / ours)


def multiplies_bfloat16():
    """Whether the processor has instructions for it: PyTorch's autocast is many times slower without."""
    has = re.search(r"bf16", subprocess.run(["lscpu"], capture_output=True, text=True).stdout) is not None
    if not has:
        print("left out: PyTorch's autocast: the processor has no instructions for bfloat16", file=sys.stderr)
    return has


def train(sizes, threads, rounds, newest):
    print("## A training step (ms): forward, backward, clipping, AdamW\n")
    print("| size | threads | heed | PyTorch | its form | ratio | of peak | heed, bfloat16 | PyTorch's best | its form | ratio | heed MB | PyTorch MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    single = {"fused": (), "compiled": ("--compile",)} if newest else {"eager": ()}
    forms = {**single, "autocast": ("--bfloat16",)} if multiplies_bfloat16() else single
    for count in threads:
        for size in sizes:
            seen = Rounds(f"train {size} {count}")
            for _ in range(rounds):
                a = seen.measure("heed", lambda: heed("train", size, count))
                for name, options in forms.items():
                    b = seen.measure(name, lambda: pytorch("train", size, count, *options))
                    if b:
                        seen.add(f"{name} MB", b["peak_mb"] * 1.048576)  # its script counts in 2^20 bytes
                seen.measure("heed bfloat16", lambda: heed("train", size, count, "--precision", "bfloat16"))
                if a:
                    seen.add("share", a["share_of_peak"])
                    seen.add("heed MB", a["peak_mb"])

            def best(names):
                times = {name: seen.of(name) if count == 1 else seen.best(name) for name in names}
                return min(((time, name) for name, time in times.items() if time is not None), default=(None, "none"))

            (theirs, form), (whole, form_of_all) = best(single), best(forms)
            ours, rounded = seen.of("heed"), seen.of("heed bfloat16")
            print(f"| {size} | {count} | {number(ours)} | {number(theirs)} | {form} | {ratio(ours, theirs)} | {number(seen.of('share'), '{:.0%}')} "
                  f"| {number(rounded)} | {number(whole)} | {form_of_all} | {ratio(rounded, whole)} "
                  f"| {number(seen.of('heed MB'), '{:.0f}')} | {number(seen.of(f'{form} MB'), '{:.0f}')} |", flush=True)
    print("\nRatios: PyTorch's time over heed's, with PyTorch in its fastest form: in float32, and beside heed's bfloat16 in any.\n")


def beside(script, name, threads, rounds):
    """A table of training steps of heed's configuration NAME.yaml beside `script`, which prepares both; what it says of them, None without."""
    print("| threads | heed | PyTorch | ratio | of peak | heed MB | PyTorch MB |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        try:
            prepared = rows([*PYTHON, script, "prepare", folder])[0]
        except Unmeasured as reason:
            print(f"left out: {name}: {reason}", file=sys.stderr)
            return None
        for count in threads:
            seen = Rounds(f"{name} {count}")
            training = [HEED, "bench", "training", f"{folder}/{name}.yaml", "--threads", count, "--seconds", 3, "--json"]
            theirs = [*PYTHON, script, "train", folder, "--threads", count]
            for _ in range(rounds):
                a = seen.measure("heed", lambda: rows(training)[0])
                b = seen.measure("PyTorch", lambda: rows(theirs, env=pinned(count))[0])
                if a:
                    seen.add("share", a["share_of_peak"])
                    seen.add("heed MB", a["peak_mb"])
                if b:
                    seen.add("PyTorch MB", b["peak_mb"] * 1.048576)
            ours, other = seen.of("heed"), seen.of("PyTorch") if count == 1 else seen.best("PyTorch")
            print(f"| {count} | {number(ours)} | {number(other)} | {ratio(ours, other)} | {number(seen.of('share'), '{:.0%}')} "
                  f"| {number(seen.of('heed MB'), '{:.0f}')} | {number(seen.of('PyTorch MB'), '{:.0f}')} |", flush=True)
    return prepared


def transformer(threads, rounds):
    print("## A training step of an encoder–decoder (ms): 3 + 3 layers, width 256, 128 pairs of sentences of Multi30k ($HEED_DATA)\n")
    prepared = beside(TRANSFORMER, "transformer", threads, rounds)
    if prepared:
        print(f"\n{prepared['context']} tokens a side, {prepared['padding']:.0%} of them padding; vocabulary {prepared['vocabulary']}.")
    print()


def lstm(threads, rounds):
    print("## A training step of a recurrent encoder–decoder (ms): LSTMs of width 512, embedding 256, Luong's attention\n")
    prepared = beside(LSTM, "lstm", threads, rounds)
    if prepared:
        print(f"\n{prepared['batch']} rows of {prepared['length']} tokens a side; vocabulary {prepared['vocabulary']}.")
    print()


def sample(sizes, threads, rounds):
    print("## Sampling with the cache of keys and values (tokens a second)\n")
    print("| size | threads | heed | PyTorch | ratio | heed, bfloat16 | PyTorch, bfloat16 | ratios |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for count in threads:
        for size in sizes:
            seen = Rounds(f"sample {size} {count}")
            for _ in range(rounds):
                seen.measure("heed", lambda: heed("sample", size, count), "tokens_per_second")
                seen.measure("PyTorch", lambda: pytorch("sample", size, count), "tokens_per_second")
                seen.measure("heed bfloat16", lambda: heed("sample", size, count, "--precision", "bfloat16"), "tokens_per_second")
                seen.measure("PyTorch bfloat16", lambda: pytorch("sample", size, count, "--bfloat16"), "tokens_per_second")
            theirs, rounded = ((seen.of(name) if count == 1 else seen.best(name, max)) for name in ("PyTorch", "PyTorch bfloat16"))
            ours, fast = seen.of("heed"), seen.of("heed bfloat16")
            print(f"| {size} | {count} | {number(ours, '{:.0f}')} | {number(theirs, '{:.0f}')} | {ratio(theirs, ours, '{:.1f}')} "
                  f"| {number(fast, '{:.0f}')} | {number(rounded, '{:.0f}')} "
                  f"| {ratio(theirs, fast, '{:.1f}')}, {ratio(rounded, fast, '{:.1f}')} |", flush=True)
    print("\nRatios of bfloat16: heed's over PyTorch's float32 and over its bfloat16.\n")


@functools.cache  # one process measures all of its rows, PyTorch's additive one for half a minute
def pytorch_attention(turn):
    return rows([*PYTHON, PYTORCH, "tiny", "--what", "attention"], env=pinned(1))


def attention(rounds):
    print("## Attention alone, forward and backward, one thread, causal, B=12 H=4 T=256 d=64 (ms)\n")
    print("| score | heed | PyTorch | ratio |\n| --- | --- | --- | --- |")

    def ours(score, dropout):
        for row in rows([HEED, "bench", "attention", score, "--threads", 1, "--causal", "--dropout", dropout, "--json"]):
            plain = row["align"] == "softmax" and row["read"] == "soft" and row["position"] == "none"
            if plain and row["score"] == score and row["what"].endswith("backward"):
                return row
        raise Unmeasured(f"heed bench attention {score} has no such row")

    def theirs_of(what, turn):
        for row in pytorch_attention(turn):
            if row["what"] == f"attention {what} T256":
                return row
        raise Unmeasured(f"this PyTorch has no attention {what}")

    # PyTorch's fused attention is F.scaled_dot_product_attention, since 2.0; its others are compositions. laplace is nn/README's, in a program
    # that it was added to.
    for name, score, dropout, what in (
        ("scaled_dot, PyTorch's fused", "scaled_dot", 0, "fused"),
        ("scaled_dot, dropout 0.1, PyTorch's fused", "scaled_dot", 0.1, "fused, dropout 0.1"),
        ("scaled_dot", "scaled_dot", 0, "scaled_dot"),
        ("scaled_dot, dropout 0.1", "scaled_dot", 0.1, "scaled_dot, dropout 0.1"),
        ("additive", "additive", 0, "additive"),
        ("laplace", "laplace", 0, "laplace"),
    ):
        seen = Rounds(f"attention {name}")
        for turn in range(min(rounds, 2)):
            seen.measure("heed", lambda: ours(score, dropout))
            seen.measure("PyTorch", lambda: theirs_of(what, turn))
        a, b = seen.of("heed"), seen.of("PyTorch")
        print(f"| {name} | {number(a, '{:.1f}')} | {number(b, '{:.1f}')} | {ratio(a, b, '{:.1f}')} |", flush=True)
    print()


def long_attention(rounds):
    print("## Attention alone by length, beside PyTorch's fused: forward and backward, one thread, causal, B x H x T x d (ms)\n")
    print("| size | heed | PyTorch | ratio |\n| --- | --- | --- | --- |")

    @functools.cache
    def lengths(turn):
        return rows([*PYTHON, PYTORCH, "tiny", "--what", "lengths"], env=pinned(1))

    for size in ("12x4x256x64", "4x8x512x32", "1x4x2048x64", "1x2x8192x64"):
        seen = Rounds(f"attention {size}")
        for turn in range(min(rounds, 2)):
            command = [HEED, "bench", "attention", "hard", "--threads", 1, "--causal", "--size", size, "--seconds", 2, "--json"]  # and scaled dot
            seen.measure("heed", lambda: next(row for row in rows(command) if row["read"] == "soft" and row["what"].endswith("backward")))
            name = f"attention fused {size}"
            seen.measure("PyTorch", lambda: next(row for row in lengths(turn) if row["what"] == name))
        a, b = seen.of("heed"), seen.of("PyTorch")
        print(f"| {size} | {number(a, '{:.1f}')} | {number(b, '{:.1f}')} | {ratio(a, b)} |", flush=True)
    print()


def seconds(command, settings=None):
    begin = time.perf_counter()
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=settings)
    if done.returncode != 0:
        raise Unmeasured(f"{' '.join(map(str, command))}: {(done.stderr.strip() or f'exit {done.returncode}').splitlines()[-1]}")
    return {"seconds": time.perf_counter() - begin}


def trials(rounds):
    print("## A trial of configs/ablations/attention.yaml, one thread, start-up included (s)\n")
    print("| attention | heed | PyTorch | ratio |\n| --- | --- | --- | --- |")
    for name in ("scaled", "additive"):
        seen = Rounds(f"trial {name}")
        for _ in range(min(rounds, 2) if name == "scaled" else 1):  # PyTorch's additive one takes minutes
            with tempfile.TemporaryDirectory() as folder:
                trial = [HEED, "run", ABLATION, f"model.attention={name}", "--threads", "1", "--output", folder]
                seen.measure("heed", lambda: seconds(trial), "seconds")
                seen.measure("PyTorch", lambda: seconds([*PYTHON, TRIAL, name], pinned(1)), "seconds")
        a, b = seen.of("heed"), seen.of("PyTorch")
        print(f"| {name} | {number(a)} | {number(b)} | {ratio(a, b, '{:.1f}')} |", flush=True)
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
                seen = Rounds(f"llmc {size} {count}")
                for _ in range(rounds):
                    seen.measure("heed", lambda: heed("train", size, count))
                    seen.measure("llm.c", lambda: rows([program, size, steps[size]], env=pinned(count))[0])
                a, b = seen.of("heed"), seen.of("llm.c")
                print(f"| {size} | {count} | {number(a)} | {number(b)} | {ratio(a, b, '{:.1f}')} |", flush=True)
    print()


def machine():
    """The processor's name: ARM's kernel does not say it, lscpu does."""
    lines = subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("Model name")), platform.machine())


def main():
    topics = ["train", "transformer", "lstm", "sample", "attention", "lengths", "trials", "llmc"]
    parser = argparse.ArgumentParser(prog="compare.sh")
    parser.add_argument("--sizes", nargs="+", default=["tiny", "nano", "small"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5, help="processes of each side, by turns; on two threads, where PyTorch is bimodal, its best counts")
    parser.add_argument("--only", nargs="+", choices=topics, default=topics)
    parser.add_argument("--avx2", action="store_true", help="both sides held to AVX2: what a processor without AVX-512 makes of them, about")
    parser.add_argument("--system", help="PyTorch of this Debian, in a root that tests/systems/run.sh makes (compare.sh)")
    parser.add_argument("--csv", help="writes every figure: heed judge FILE --arm program --seed round --metric figure --lower --task 'train tiny 1'")
    chosen = parser.parse_args()
    newest = int(check_products().split()[1].split(".")[0]) >= 2
    if chosen.avx2:
        os.environ.update(AVX2)
    held = ", both sides held to AVX2" if chosen.avx2 else ""
    print(f"{machine()}, {os.cpu_count()} cores, OpenBLAS's kernels for {kernels()}{held}, {datetime.date.today()}\n")
    if "train" in chosen.only:
        train(chosen.sizes, chosen.threads, chosen.rounds, newest)
    if "transformer" in chosen.only:
        transformer(chosen.threads, chosen.rounds)
    if "lstm" in chosen.only:
        lstm(chosen.threads, chosen.rounds)
    if "sample" in chosen.only:
        sample(chosen.sizes, chosen.threads, chosen.rounds)
    if "attention" in chosen.only:
        attention(chosen.rounds)
    if "lengths" in chosen.only and newest:
        long_attention(chosen.rounds)
    if "trials" in chosen.only:
        trials(chosen.rounds)
    if "llmc" in chosen.only:
        checkout = os.environ.get("LLMC", "")
        if (pathlib.Path(checkout) / "train_gpt2.c").is_file():
            llmc(chosen.sizes, chosen.threads, chosen.rounds, checkout)
        else:
            print(f"llm.c is left out: LLMC names no checkout of it ({checkout or 'it is not set'})")
    if chosen.csv:
        with open(chosen.csv, "w", newline="") as file:
            csv.writer(file).writerows(Rounds.table)


if __name__ == "__main__":
    main()
