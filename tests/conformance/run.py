#!/usr/bin/env python3
"""Runs the node tests of ONNX's backend (the package onnx) on a device: run.py LIBRARY [--table FILE] [--least N] [NAME...]

Each node is built with Halfstep's operators through the C interface and compared with the numbers that ONNX has. Prints
how many are right, and writes a table of all. Exit status: 0; 1 if one is wrong, or fewer than N are right; 77 without
the package."""
import argparse
import collections
import inspect
import os
import sys
import warnings

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.case.node import collect_testcases
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from halfstep import Graph, Library, Refused  # noqa: E402
from operators import OPERATORS, value  # noqa: E402


def build(graph, model, inputs):
    values = {i.name: array for i, array in zip(model.graph.input, inputs)}
    values.update({i.name: numpy_helper.to_array(i) for i in model.graph.initializer})
    for node in model.graph.node:
        lower = OPERATORS.get(node.op_type)
        if lower is None:
            raise Refused("no operator " + node.op_type)
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        results = lower(graph, [values[i] if i else None for i in node.input], attributes, len([o for o in node.output if o]))
        values.update(zip([o for o in node.output if o], results))
    return [value(graph, values[o.name]) for o in model.graph.output]


def difference(got, want, case):
    if list(got.shape) != list(want.shape):
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    if want.dtype == np.bool_:
        wrong = (got != 0) != want
    else:
        wrong = ~np.isclose(got, want, rtol=case.rtol, atol=max(case.atol, 1e-6), equal_nan=True)
    return f"{int(wrong.sum())} of {wrong.size} elements" if wrong.any() else ""


def verdict(library, case):
    for inputs, outputs in case.data_sets:
        inputs, outputs = ([np.asarray(v) if isinstance(v, np.generic) else v for v in part] for part in (inputs, outputs))
        if not all(isinstance(v, np.ndarray) for v in [*inputs, *outputs]):
            return "missing", "sequences and optional values"
        if any(o.dtype not in (np.float32, np.bool_) for o in outputs):
            return "missing", f"results of type {outputs[0].dtype}"
        graph = Graph(library)
        try:
            for tensor, want in zip(build(graph, case.model, inputs), outputs):
                text = difference(graph.run(tensor), want, case)
                if text:
                    return "wrong", text
        except Refused as refused:
            return "missing", str(refused)
        finally:
            graph.close()
    return "right", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--table")
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    library = Library(options.path)
    warnings.simplefilter("ignore")
    has_operator = bool(inspect.signature(collect_testcases).parameters)
    cases = collect_testcases(None) if has_operator else collect_testcases()
    rows = []
    for case in cases:
        if case.model is None or (options.names and case.name not in options.names):
            continue
        try:
            rows.append((case.name, *verdict(library, case)))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            rows.append((case.name, "missing", f"not imported: {error}"))
    if options.table:
        with open(options.table, "w", encoding="utf-8") as table:
            table.writelines(f"{name}\t{what}\t{why}\n" for name, what, why in rows)
    counts = collections.Counter(what for _, what, _ in rows)
    for name, what, why in rows:
        if what == "wrong" or options.names:
            print(f"{what} {name}: {why}")
    print(f"{len(rows)} node tests: " + ", ".join(f"{counts[w]} {w}" for w in ("right", "missing", "wrong")))
    return 1 if counts["wrong"] or counts["right"] < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
