#!/usr/bin/env python3
"""Makes the files parity_*.json that tests/train/test_parity.cpp holds Halfstep's networks against.

    /usr/bin/python3 tests/reference/make_parity.py     (Debian: python3-torch)

PyTorch runs each network in double: one step's logits, loss and gradients, and for the residual networks ten steps of
SGD. Weights and images are not stored: both sides draw them from a hash of their names. Of every gradient and of every
weight after ten steps only the norm and a few projections on vectors of +-1 are kept: the mean square of two tensors'
differences along such vectors estimates the square of the norm of their difference. Of every gradient the error that f16 makes in it is kept, too.
"""
import copy
import json
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from draws import words

PROJECTIONS = 8
DRAWS = 16
LOSS_SCALE = 1024
rounding = None  # a generator where values are stored in f16


def rounded(values):
    """Each to one of the two f16 around it, at random: with the expectation of the value."""
    spacing = torch.ldexp(torch.ones_like(values), torch.frexp(values).exponent.clamp(min=-13) - 11)
    return torch.floor(values / spacing + torch.rand(values.shape, generator=rounding, dtype=torch.double)) * spacing


class InF16(torch.autograd.Function):
    @staticmethod
    def forward(_, values):
        return rounded(values)

    @staticmethod
    def backward(_, gradient):
        return rounded(gradient * LOSS_SCALE) / LOSS_SCALE


def stored(values):
    """What an operator leaves for others; so it is where its gradient is complete."""
    return values if rounding is None else InF16.apply(values)


def uniform(name, shape, low, high):
    unit = (words(name, int(np.prod(shape))) >> np.uint64(40)).astype(np.float64) / 2**24
    # In f32, as Halfstep reads them.
    return torch.tensor((low + (high - low) * unit).astype(np.float32).astype(np.float64)).reshape(shape)


def first_values(name, shape):
    if len(shape) == 4:
        bound = (6 / (shape[1] * shape[2] * shape[3])) ** 0.5
        return uniform(name, shape, -bound, bound)
    if len(shape) == 2:
        return uniform(name, shape, -(shape[1] ** -0.5), shape[1] ** -0.5)
    if name.endswith("bn2.weight"):  # residual branches begin small, as they do in practice: f16 then tells the signs
        return uniform(name, shape, 0.02, 0.1)
    if name.startswith("features") and "running" not in name:  # seldom where ReLU6 bends, which f32 may see elsewhere
        return uniform(name, shape, 0.3, 0.7) if name.endswith("weight") else uniform(name, shape, 1, 5)
    if name.endswith("weight") or name.endswith("running_var"):
        return uniform(name, shape, 0.5, 1.5)
    return uniform(name, shape, -0.25, 0.25)


def digest(name, tensor):
    values = tensor.detach().reshape(-1).numpy()
    signs = words(name + " signs", values.size)
    projections = []
    for k in range(PROJECTIONS):
        plus = (signs >> np.uint64(k)) & np.uint64(1)
        projections.append(float(np.where(plus == 1, values, -values).sum()))
    return {"norm": float(np.linalg.norm(values)), "projections": projections}


class Block(nn.Module):
    def __init__(self, before, channels, stride, identity):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.pad = 0
        self.downsample = None
        if stride != 1 or before != channels:
            if identity:
                self.pad = (channels - before) // 2
            else:
                self.downsample = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False),
                                                nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.downsample is not None:
            x = self.downsample(x)
        elif self.pad:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(stored(x + y))


class ResNet(nn.Module):
    def __init__(self, stem, blocks, widths, identity):
        super().__init__()
        self.conv1, self.pool = stem
        self.bn1 = nn.BatchNorm2d(widths[0])
        before = widths[0]
        for stage, channels in enumerate(widths):
            layer = []
            for i in range(blocks):
                layer.append(Block(before, channels, 2 if stage > 0 and i == 0 else 1, identity))
                before = channels
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layer))
        self.stages = len(widths)
        self.fc = nn.Linear(before, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(stored(x.mean((2, 3))))


def resnet8():
    return ResNet((nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.Identity()), 1, (16, 32, 64), True)


def resnet18():
    return ResNet((nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.MaxPool2d(3, 2, 1)), 2, (64, 128, 256, 512), False)


def channels_of(channels, width):
    """torchvision's rounding: the nearest multiple of 8, unless that takes away more than a tenth."""
    nearest = max(8, int(channels * width + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels * width else nearest


def conv_norm(before, channels, kernel, stride=1, groups=1):
    return [nn.Conv2d(before, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(channels)]


class InvertedResidual(nn.Module):
    def __init__(self, before, channels, stride, expansion):
        super().__init__()
        hidden = before * expansion
        layers = [] if expansion == 1 else [nn.Sequential(*conv_norm(before, hidden, 1), nn.ReLU6())]
        layers.append(nn.Sequential(*conv_norm(hidden, hidden, 3, stride, hidden), nn.ReLU6()))
        self.conv = nn.Sequential(*layers, *conv_norm(hidden, channels, 1))
        self.adds = stride == 1 and before == channels

    def forward(self, x):
        return stored(x + self.conv(x)) if self.adds else self.conv(x)


class MobileNetV2(nn.Module):
    """Sandler et al. 2018, table 2, put together as torchvision does, so that the names are its own."""

    def __init__(self, width, classes):
        super().__init__()
        before = channels_of(32, width)
        features = [nn.Sequential(*conv_norm(3, before, 3, 2), nn.ReLU6())]
        for expansion, channels, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(blocks):
                after = channels_of(channels, width)
                features.append(InvertedResidual(before, after, stride if i == 0 else 1, expansion))
                before = after
        last = channels_of(1280, max(1.0, width))
        features.append(nn.Sequential(*conv_norm(before, last, 1), nn.ReLU6()))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(last, classes))

    def forward(self, x):
        return self.classifier(stored(self.features(x).mean((2, 3))))


def names_and_shapes(model):
    return [f"{name} {'x'.join(map(str, tensor.shape))}" for name, tensor in model.state_dict().items()
            if "num_batches" not in name]


def f16_errors(model, images, labels):
    """Of each parameter, the norm of what f16 does to its gradient: the root of the mean square over DRAWS draws of how
    each number that is stored is rounded. In f16 are what operators leave, its gradients times the loss scale, and the
    parameters and their gradients."""
    global rounding
    squares = {name: 0.0 for name, _ in model.named_parameters()}
    rounding = torch.Generator()
    for draw in range(DRAWS):
        rounding.manual_seed(draw)
        twin = copy.deepcopy(model)
        for module in twin.modules():
            if isinstance(module, (nn.Conv2d, nn.BatchNorm2d, nn.Linear)):
                module.register_forward_hook(lambda module, inputs, output: stored(output))
        with torch.no_grad():
            for p in twin.parameters():
                p.copy_(rounded(p))
        twin.zero_grad()
        F.cross_entropy(twin(stored(images)), labels).backward()
        for (name, exact), p in zip(model.named_parameters(), twin.parameters()):
            gradient = rounded(p.grad * LOSS_SCALE) / LOSS_SCALE
            squares[name] += (gradient - exact.grad).square().sum().item() / DRAWS
    rounding = None
    return {name: square ** 0.5 for name, square in squares.items()}


def parity(model, set_of_images, batch, extent, rate, steps):
    model.double().train()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if "num_batches" not in name:
                tensor.copy_(first_values(name, tuple(tensor.shape)))
    images = uniform(f"images {set_of_images}", (batch, 3, extent, extent), -1, 1)
    labels = torch.tensor((words("labels", batch) % np.uint64(10)).astype(np.int64))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)
    result = {"images": set_of_images, "batch": batch, "extent": extent, "rate": rate, "losses": []}
    for step in range(steps):
        optimizer.zero_grad()
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        if step == 0:
            result["logits"] = logits.detach().reshape(-1).tolist()
            errors = f16_errors(model, images, labels)
            result["gradients"] = {name: digest(name, p.grad) | {"f16_error": errors[name]}
                                   for name, p in model.named_parameters()}
        if step == 0 and steps > 1:
            result["first_statistics"] = {name: digest(name, tensor) for name, tensor in model.state_dict().items()
                                          if "running" in name}
        result["losses"].append(loss.item())
        optimizer.step()
    if steps == 1:
        return result
    result["last"] = {name: digest(name, tensor) for name, tensor in model.state_dict().items()
                      if "num_batches" not in name}
    return result


def shortened(value):
    """Numbers to eight digits: the tests ask for four."""
    if isinstance(value, float):
        return float(f"{value:.8g}")
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    return [shortened(item) for item in value] if isinstance(value, list) else value


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    # Of 24 sets of images, those for which no ReLU's input is so near to zero that f32 may see the other side of it.
    made = {"resnet8": parity(resnet8(), 11, 8, 32, 0.02, 10),
            "resnet18": parity(resnet18(), 6, 4, 64, 0.01, 10),
            "mobilenet_v2": parity(MobileNetV2(0.25, 10), 13, 4, 64, 0.01, 1)}
    made["mobilenet_v2"]["tensors"] = names_and_shapes(MobileNetV2(1.0, 1000))
    for name, numbers in made.items():
        with open(os.path.join(folder, f"parity_{name}.json"), "w") as file:
            json.dump(shortened(numbers), file, indent=0)
            file.write("\n")


if __name__ == "__main__":
    main()
