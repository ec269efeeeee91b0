#!/usr/bin/env python3
"""Makes parity_hash_grid.json, which tests/train/test_image_network.cpp holds Halfstep against.

    python3 tests/reference/make_hash_grid_parity.py     (Debian: python3-numpy)

A network of the shape that tiny-cuda-nn publishes for images (2 coordinates, a hash grid of 16 levels of 2 features, two
hidden layers of 64) learns colours given by a formula, in double. The grid is that of Mueller et al. 2022: 16 * 1.5^level
cells along each axis, whose corners are vertices. Weights and positions are drawn from a hash of their names, as in
make_parity.py.
"""
import json
import os

import numpy as np

from draws import words

LEVELS, FEATURES, ENTRIES, BASE, SCALE = 16, 2, 1 << 15, 16, 1.5
WIDTH, BATCH, STEPS = 64, 256, 50
RATE, BETA1, BETA2, EPSILON = 2e-3, 0.9, 0.99, 1e-4


def uniform(name, shape, low, high):
    """f32 numbers, as make_parity.py draws them."""
    fractions = (words(name, int(np.prod(shape))) >> np.uint64(40)).astype(np.float64) / 2**24
    return np.float32(low + (high - low) * fractions).astype(np.float64).reshape(shape)


def grid_layout():
    """{cells, first entry, whether each vertex has an entry of its own} of each level, and the number of entries."""
    levels, first = [], 0
    for level in range(LEVELS):
        cells = int(BASE * SCALE**level)
        dense = (cells + 1) ** 2 <= ENTRIES
        levels.append((cells, first, dense))
        first += (cells + 1) ** 2 if dense else ENTRIES
    return levels, first


LAYOUT, TOTAL = grid_layout()


def corners(positions):
    """Entries {batch, levels, 4} and weights {batch, levels, 4} of the cells around positions."""
    entries, weights = [], []
    for cells, first, dense in LAYOUT:
        at = positions * cells
        low = np.minimum(np.floor(at), cells - 1)
        fraction = at - low
        for corner in range(4):
            up = np.array([corner & 1, corner >> 1])
            vertex = (low + up).astype(np.uint64)
            if dense:
                index = vertex[:, 0] + vertex[:, 1] * np.uint64(cells + 1)
            else:
                index = (vertex[:, 0] ^ (vertex[:, 1] * np.uint64(2654435761) & np.uint64(0xFFFFFFFF))) % np.uint64(ENTRIES)
            entries.append(first + index.astype(np.int64))
            weights.append(np.prod(np.where(up == 1, fraction, 1 - fraction), axis=1))
    shape = (LEVELS, 4, len(positions))
    return np.array(entries).reshape(shape).transpose(2, 0, 1), np.array(weights).reshape(shape).transpose(2, 0, 1)


def colours(positions):
    x, y = positions[:, 0], positions[:, 1]
    return np.stack([0.5 + 0.5 * np.sin(9 * x + 4 * y), 0.5 + 0.5 * np.sin(31 * x * y), x * (1 - y)], axis=1)


def loss_and_gradients(p, positions):
    entries, weights = corners(positions)
    table = p["table"].reshape(TOTAL, FEATURES)
    x = (weights[..., None] * table[entries]).sum(axis=2).reshape(BATCH, LEVELS * FEATURES)
    h1 = np.maximum(x @ p["w1"], 0)
    h2 = np.maximum(h1 @ p["w2"], 0)
    error = h2 @ p["w3"] - colours(positions)
    dy = 2 * error / error.size
    dh2 = (dy @ p["w3"].T) * (h2 > 0)
    dh1 = (dh2 @ p["w2"].T) * (h1 > 0)
    dx = (dh1 @ p["w1"].T).reshape(BATCH, LEVELS, 1, FEATURES)
    dtable = np.zeros_like(table)
    np.add.at(dtable, entries, weights[..., None] * dx)
    return (error**2).mean(), {"table": dtable.ravel(), "w1": x.T @ dh1, "w2": h1.T @ dh2, "w3": h2.T @ dy}


def main():
    p = {"table": uniform("table", (TOTAL * FEATURES,), -1e-4, 1e-4)}
    for name, shape in {"w1": (32, WIDTH), "w2": (WIDTH, WIDTH), "w3": (WIDTH, 3)}.items():
        bound = np.sqrt(6 / shape[0])
        p[name] = uniform(name, shape, -bound, bound)
    m = {name: np.zeros_like(v) for name, v in p.items()}
    s = {name: np.zeros_like(v) for name, v in p.items()}
    losses = []
    for step in range(1, STEPS + 1):
        loss, gradients = loss_and_gradients(p, uniform(f"positions{step}", (BATCH, 2), 0, 1))
        losses.append(loss)
        for name, g in gradients.items():
            m[name] = BETA1 * m[name] + (1 - BETA1) * g
            s[name] = BETA2 * s[name] + (1 - BETA2) * g * g
            p[name] -= RATE * m[name] / (1 - BETA1**step) / (np.sqrt(s[name] / (1 - BETA2**step)) + EPSILON)
    path = os.path.join(os.path.dirname(__file__), "parity_hash_grid.json")
    with open(path, "w") as file:
        json.dump({"parameters": sum(v.size for v in p.values()), "losses": losses}, file, indent=1)
        file.write("\n")


main()
