#!/usr/bin/env python3
"""Trains the same models in PyTorch and with bin/bench, in turn, and prints the samples a second of each.

    tests/bench/compare_pytorch.py                            # lenet5 and fashion_cnn, f32 against f32, batch 64
    tests/bench/compare_pytorch.py --models resnet8 resnet20 --json ratios.json
    tests/bench/compare_pytorch.py --models bert_tiny bert_mini --batch 16    # texts of 128 tokens
    tests/bench/compare_pytorch.py --models --kernels --precisions mixed    # products and convolutions alone, f16

PyTorch runs at its best: on every core this process may use (--threads), in both layouts of images, contiguous and
channels_last, and compiled by torch.compile, on a CUDA machine with CUDA graphs, on a CPU if there is a C++ compiler;
the fastest counts. On a CUDA machine it trains with autocast and GradScaler for `mixed`. All take turns, so that
whatever else the machine does slows each of them; medians are compared. Needs PyTorch: PyPI's, or on Debian
python3-torch with libopenblas0-pthread; with the reference BLAS, its products take ten times as long.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    sys.exit("error: expected PyTorch in this Python, got none. Hint: on Debian, apt-get install python3-torch")

ROOT = pathlib.Path(__file__).resolve().parents[2]


def lenet5():
    return (1, 28, 28), nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def fashion_cnn():
    return (1, 28, 28), nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    """Two 3x3 convolutions, and past them every second pixel with channels of zeros: option A of He et al. 2016."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.stride, self.more = stride, channels - channels_in
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.more:
            x = functional.pad(x[:, :, ::self.stride, ::self.stride],
                               (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
        return functional.relu(x + y)


def resnet(depth):
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for stage in range(3):
        for i in range((depth - 2) // 6):
            layers.append(Block(channels, 16 << stage, 2 if stage and not i else 1))
            channels = 16 << stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return (3, 32, 32), nn.Sequential(*layers)


MODELS = {"lenet5": lenet5, "fashion_cnn": fashion_cnn, "resnet8": lambda: resnet(8), "resnet20": lambda: resnet(20)}


TEXT_LENGTH, TEXT_VOCABULARY = 128, 8000
BLOCK, CHARACTERS = 64, 65


class Transformer(nn.Module):
    """BERT's encoder and classifier, or GPT-2 with its table of tokens as last product. Attention is PyTorch's fused
    scaled_dot_product_attention."""

    def __init__(self, layers, heads, width, length, vocabulary, dropout, causal):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(512 if not causal else length, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
                           "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width),
                           "norm1": nn.LayerNorm(width), "norm2": nn.LayerNorm(width)}) for _ in range(layers))
        self.heads, self.causal = heads, causal
        if not causal:
            self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    def attention(self, layer, x):
        n, t, width = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2) for part in layer["qkv"](x).split(width, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=self.dropout.p)
        return self.dropout(layer["out"](y.transpose(1, 2).reshape(n, t, width)))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        approximate = "tanh" if self.causal else "none"
        x = self.dropout(x if self.causal else self.norm(x))
        for layer in self.layers:
            def feed_forward(y):
                return self.dropout(layer["down"](functional.gelu(layer["up"](y), approximate=approximate)))
            if self.causal:
                x = x + self.attention(layer, layer["norm1"](x))
                x = x + feed_forward(layer["norm2"](x))
            else:
                x = layer["norm1"](x + self.attention(layer, x))
                x = layer["norm2"](x + feed_forward(x))
        if self.causal:
            return functional.linear(self.norm(x), self.tokens.weight).flatten(0, 1)
        return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))


TRANSFORMERS = {"bert_tiny": (2, 2, 128, TEXT_LENGTH, TEXT_VOCABULARY, 0.1, False),
                "bert_mini": (4, 4, 256, TEXT_LENGTH, TEXT_VOCABULARY, 0.1, False),
                "gpt": (4, 4, 128, BLOCK, CHARACTERS, 0.0, True)}


class PyTorch:
    """A model that trains on the same random batch again and again."""

    def __init__(self, model, precision, batch, device, layout, compiled=False):
        if model in TRANSFORMERS:
            sizes = TRANSFORMERS[model]
            self.network = Transformer(*sizes).to(device)
            self.inputs = torch.randint(sizes[4], (batch, sizes[3]), device=device)
            self.labels = self.inputs.flatten() if sizes[6] else torch.randint(2, (batch,), device=device)
        else:
            shape, network = MODELS[model]()
            self.network = network.to(device, memory_format=layout)
            self.inputs = torch.rand(batch, *shape, device=device).to(memory_format=layout)
            self.labels = torch.randint(10, (batch,), device=device)
        self.forward = torch.compile(self.loss, mode="reduce-overhead") if compiled else self.loss
        self.device = device
        self.mixed = precision == "mixed"
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-4)
        self.scaler = torch.amp.GradScaler(device, enabled=self.mixed)
        self.batch = batch

    def loss(self):
        with torch.autocast(self.device, enabled=self.mixed):
            return functional.cross_entropy(self.network(self.inputs), self.labels)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(self.forward()).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def finish(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def samples_per_second(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.finish()
        return steps * self.batch / (time.perf_counter() - start)


# Square products, and the 3x3 convolutions of ResNet-50 on images of 224x224: {extent of the image, channels}.
PRODUCTS = [1024, 4096, 8192]
CONVOLUTIONS = [(56, 64), (28, 128), (14, 256), (7, 512)]
CONVOLUTION_BATCH = 64


def timed(work, device, repeats=10):
    """Median milliseconds of `work`: on a GPU by its own clock, as bin/bench takes them, without launch and wait."""
    for _ in range(3):
        work()
    if device == "cuda":
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
        marks[0].record()
        for mark in marks[1:]:
            work()
            mark.record()
        torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) for begin, end in zip(marks, marks[1:]))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def product_in_pytorch(extent, dtype, device):
    a, b = (torch.rand(extent, extent, device=device, dtype=dtype) for _ in range(2))
    return [timed(lambda: a @ b, device)]


def convolution_in_pytorch(extent, channels, dtype, device):
    """Forward, data gradient and weight gradient."""
    x = torch.rand(CONVOLUTION_BATCH, channels, extent, extent, device=device, dtype=dtype)
    w = torch.rand(channels, channels, 3, 3, device=device, dtype=dtype)
    x, w = (t.contiguous(memory_format=torch.channels_last) for t in (x, w))
    dy = functional.conv2d(x, w, padding=1)

    def gradient(of_data):
        return torch.ops.aten.convolution_backward(dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                                                   [of_data, not of_data, False])
    return [timed(lambda: functional.conv2d(x, w, padding=1), device), timed(lambda: gradient(True), device),
            timed(lambda: gradient(False), device)]


def compare_kernels(arguments, precision):
    on = "cuda" if torch.cuda.is_available() else "cpu"
    dtype, name = (torch.float16, "f16") if precision == "mixed" else (torch.float32, "f32")
    work = [(["gemm", "--m", n, "--n", n, "--k", n], lambda n=n: product_in_pytorch(n, dtype, on)) for n in PRODUCTS
            if n <= arguments.largest_product]
    work += [(["conv", "--batch", CONVOLUTION_BATCH, "--height", e, "--width", e, "--in", c, "--out", c],
              lambda e=e, c=c: convolution_in_pytorch(e, c, dtype, on)) for e, c in CONVOLUTIONS]
    for command, in_pytorch in work:
        ours = bench(arguments, *command, "--dtype", name, "--repeats", 10)
        for result, theirs in zip(ours, in_pytorch()):
            row = {"name": result["name"], "device": result["device"], "halfstep_ms": result["median_ms"],
                   "timer": result["timer"], "gflops": result["gflops"], "pytorch_ms": theirs,
                   "pytorch_timer": "events" if on == "cuda" else "clock", "pytorch": torch.__version__,
                   "ratio": theirs / result["median_ms"]}
            print(f"{row['name']:<52} ms Halfstep {row['halfstep_ms']:.3f} ({row['gflops']:.0f} GFLOPS), "
                  f"PyTorch {theirs:.3f}; {row['ratio']:.2f} of PyTorch", flush=True)
            yield row


def bench(arguments, *command):
    """The results of one run of bin/bench."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [arguments.bench, *command, "--json", report]
        if arguments.device:
            command += ["--device", arguments.device]
        done = subprocess.run([*arguments.launcher, *map(str, command)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: {arguments.bench} failed: {done.stderr.strip()}")
        return json.loads(report.read_text())["results"]


def halfstep_samples_per_second(arguments, model, precision):
    """One run of bin/bench, which takes its own median."""
    result = bench(arguments, "step", "--model", model, "--precision", precision, "--batch", arguments.batch,
                   "--repeats", 5, "--steps", arguments.steps)[0]
    return result["samples_per_second"], result["device"]


def compare(arguments, model, precision):
    on = "cuda" if torch.cuda.is_available() else "cpu"
    rivals = {"contiguous": PyTorch(model, precision, arguments.batch, on, torch.contiguous_format)}
    if model in MODELS:
        rivals["channels_last"] = PyTorch(model, precision, arguments.batch, on, torch.channels_last)
    if hasattr(torch, "compile") and (on == "cuda" or shutil.which("g++")):
        rivals["compiled"] = PyTorch(model, precision, arguments.batch, on, torch.channels_last, compiled=True)
    for rival in rivals.values():
        rival.samples_per_second(3)  # the first steps choose kernels and compile
    speeds = {"Halfstep": [], **{name: [] for name in rivals}}
    device = ""
    for _ in range(arguments.rounds):
        speed, device = halfstep_samples_per_second(arguments, model, precision)
        speeds["Halfstep"].append(speed)
        for name, rival in rivals.items():
            speeds[name].append(rival.samples_per_second(arguments.steps))
    row = {"model": model, "precision": precision, "batch": arguments.batch, "device": device,
           "pytorch": torch.__version__, "pytorch_threads": torch.get_num_threads(),
           "pytorch_device": torch.cuda.get_device_name() if on == "cuda" else "cpu"}
    for name, values in speeds.items():
        row[f"{name} samples/s"] = statistics.median(values)
    row["fastest"] = max(rivals, key=lambda name: row[f"{name} samples/s"])
    row["ratio"] = row["Halfstep samples/s"] / row[f"{row['fastest']} samples/s"]
    return row


def show(row):
    speeds = ", ".join(f"{key.split()[0]} {value:.0f}" for key, value in row.items() if key.endswith("samples/s"))
    print(f"{row['model']:<12} {row['precision']:<8} batch {row['batch']}: samples/s {speeds}; {row['ratio']:.2f} of "
          f"PyTorch {row['pytorch']}, {row['fastest']}, {row['pytorch_threads']} threads", flush=True)


def arguments_of(text):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", choices=[*MODELS, *TRANSFORMERS], default=["lenet5", "fashion_cnn"])
    parser.add_argument("--precisions", nargs="+", choices=["float32", "mixed"], default=["float32"])
    parser.add_argument("--kernels", action="store_true", help="compare products and convolutions, too")
    parser.add_argument("--largest-product", type=int, default=PRODUCTS[-1], help="extent of the largest square product")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10, help="steps timed together")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each takes")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="threads of PyTorch on a CPU (all cores: %(default)s)")
    parser.add_argument("--bench", default=ROOT / "build/release/bin/bench", type=pathlib.Path)
    parser.add_argument("--launcher", nargs="+", default=[], help="command that bench is run by, such as a chroot's")
    parser.add_argument("--device", help="Vulkan device: index or part of its name")
    parser.add_argument("--json", type=pathlib.Path, help="file to write the rows to")
    arguments = parser.parse_args(text)
    if not arguments.bench.exists():
        parser.error(f"expected the program {arguments.bench}, got none. Hint: build it, or name it with --bench")
    if min(arguments.batch, arguments.steps, arguments.rounds, arguments.threads) < 1:
        parser.error("expected --batch, --steps, --rounds and --threads of at least 1")
    if "mixed" in arguments.precisions and not torch.cuda.is_available():
        parser.error("expected float32 on a CPU, where PyTorch has no f16 training, got mixed")
    return arguments


def main():
    arguments = arguments_of(sys.argv[1:])
    torch.set_num_threads(arguments.threads)
    rows = []
    for precision in arguments.precisions if arguments.kernels else []:
        rows += compare_kernels(arguments, precision)
    for model in arguments.models:
        for precision in arguments.precisions:
            rows.append(compare(arguments, model, precision))
            show(rows[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps({"results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
