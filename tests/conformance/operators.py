"""ONNX operators in Halfstep's: OPERATORS[name](g, inputs, attributes, outputs) returns the outputs.

Inputs are tensors of a graph, or numpy arrays where a value is known when the graph is built: integers, and what is
computed from them. `value` makes a tensor of either, `known` asks for an array."""
import ctypes
import math

import numpy as np

from halfstep import Attention, Conv, Pool, Refused, pair, shape_of

OPERATORS = {}


def operator(*names):
    def add(function):
        for name in names:
            OPERATORS[name] = function
        return function
    return add


def known(x):
    if not isinstance(x, np.ndarray):
        raise Refused("an operand that is only known when the graph runs")
    return x


def value(g, x):
    if not isinstance(x, np.ndarray):
        return x
    if x.dtype not in (np.float32, np.bool_):
        raise Refused(f"numbers of type {x.dtype}")
    return g.input(x.astype(np.float32))


def extents(g, x):
    return list(x.shape) if isinstance(x, np.ndarray) else g.shape(x)


def constant(g, number):
    return g.input(np.full((1,), number, np.float32))


def binary(name):
    def lower(g, x, a, n):
        left, right = value(g, x[0]), value(g, x[1])
        return [getattr(g, name)(left, right)]
    return lower


for onnx_name, name in {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Greater": "greater", "Less": "less",
                        "GreaterOrEqual": "greater_equal", "LessOrEqual": "less_equal", "Equal": "equal", "Pow": "pow",
                        "Or": "maximum", "And": "minimum", "Xor": "not_equal"}.items():
    OPERATORS[onnx_name] = binary(name)


def unary(make):
    return lambda g, x, a, n: [make(g, value(g, x[0]), a)]


def clip(g, x, low, high):
    x = x if low is None else g.maximum(x, constant(g, low))
    return x if high is None else g.minimum(x, constant(g, high))


def softplus(g, x):
    return g.add(g.relu(x), g.log(g.offset(g.exp(g.scale(g.abs(x), -1.0)), 1.0)))


def elu(g, x, alpha):
    below = g.scale(g.offset(g.exp(g.minimum(x, constant(g, 0))), -1.0), alpha)
    return g.where(g.greater(x, constant(g, 0)), x, below)


def f(a, name, default):
    return float(a.get(name, default))


OPERATORS.update({
    "Identity": unary(lambda g, x, a: g.scale(x, 1.0)), "Abs": unary(lambda g, x, a: g.abs(x)),
    "Neg": unary(lambda g, x, a: g.scale(x, -1.0)), "Relu": unary(lambda g, x, a: g.relu(x)),
    "Sigmoid": unary(lambda g, x, a: g.sigmoid(x)), "Tanh": unary(lambda g, x, a: g.tanh(x)),
    "Exp": unary(lambda g, x, a: g.exp(x)), "Log": unary(lambda g, x, a: g.log(x)),
    "Sqrt": unary(lambda g, x, a: g.sqrt(x)), "Sin": unary(lambda g, x, a: g.sin(x)),
    "Cos": unary(lambda g, x, a: g.cos(x)), "HardSwish": unary(lambda g, x, a: g.hardswish(x)),
    "Reciprocal": unary(lambda g, x, a: g.div(constant(g, 1), x)),
    "Not": unary(lambda g, x, a: g.offset(g.scale(x, -1.0), 1.0)),
    "IsNaN": unary(lambda g, x, a: g.not_equal(x, x)),
    "Tan": unary(lambda g, x, a: g.div(g.sin(x), g.cos(x))),
    "Sinh": unary(lambda g, x, a: g.scale(g.sub(g.exp(x), g.exp(g.scale(x, -1.0))), 0.5)),
    "Cosh": unary(lambda g, x, a: g.scale(g.add(g.exp(x), g.exp(g.scale(x, -1.0))), 0.5)),
    "Sign": unary(lambda g, x, a: g.sub(g.greater(x, constant(g, 0)), g.less(x, constant(g, 0)))),
    "LeakyRelu": unary(lambda g, x, a: g.leaky_relu(x, f(a, "alpha", 0.01))),
    "ThresholdedRelu": unary(lambda g, x, a: g.mul(x, g.greater(x, constant(g, a.get("alpha", 1.0))))),
    "Elu": unary(lambda g, x, a: elu(g, x, f(a, "alpha", 1))),
    "Celu": unary(lambda g, x, a: elu_of(g, x, f(a, "alpha", 1))),
    "Selu": unary(lambda g, x, a: g.scale(elu(g, x, f(a, "alpha", 1.6732632)), f(a, "gamma", 1.0507010))),
    "Softplus": unary(lambda g, x, a: softplus(g, x)),
    "Softsign": unary(lambda g, x, a: g.div(x, g.offset(g.abs(x), 1.0))),
    "Mish": unary(lambda g, x, a: g.mul(x, g.tanh(softplus(g, x)))),
    "HardSigmoid": unary(lambda g, x, a: clip(g, g.offset(g.scale(x, f(a, "alpha", 0.2)), f(a, "beta", 0.5)), 0, 1)),
    "Gelu": unary(lambda g, x, a: g.gelu_tanh(x) if a.get("approximate") == b"tanh" else g.gelu(x)),
    "Swish": unary(lambda g, x, a: g.mul(x, g.sigmoid(g.scale(x, f(a, "alpha", 1))))),
    "Softmax": unary(lambda g, x, a: g.softmax(x, a.get("axis", -1))),
    "LogSoftmax": unary(lambda g, x, a: g.log_softmax(x, a.get("axis", -1))),
    "GlobalAveragePool": unary(lambda g, x, a: g.mean(x, shape_of(range(2, len(g.shape(x)))), 1)),
})


def elu_of(g, x, alpha):
    return elu(g, g.scale(x, 1 / alpha), 1.0) if alpha == 1 else g.scale(elu(g, g.scale(x, 1 / alpha), 1.0), alpha)


def many(name, mean=False):
    def lower(g, x, a, n):
        total = value(g, x[0])
        for other in x[1:]:
            total = getattr(g, name)(total, value(g, other))
        return [g.scale(total, 1.0 / len(x)) if mean else g.scale(total, 1.0)]
    return lower


OPERATORS.update({"Sum": many("add"), "Mean": many("add", True), "Max": many("maximum"), "Min": many("minimum")})


@operator("Clip")
def lower_clip(g, x, a, n):
    ends = [float(known(e)) if e is not None else None for e in (x[1:] + [None, None])[:2]]
    return [clip(g, value(g, x[0]), *ends)]


@operator("PRelu")
def prelu(g, x, a, n):
    t, slope = value(g, x[0]), value(g, x[1])
    return [g.where(g.greater(t, constant(g, 0)), t, g.mul(t, slope))]


@operator("Shrink")
def shrink(g, x, a, n):
    t, bias, edge = value(g, x[0]), f(a, "bias", 0), f(a, "lambd", 0.5)
    above = g.mul(g.greater(t, constant(g, edge)), g.offset(t, -bias))
    return [g.add(above, g.mul(g.less(t, constant(g, -edge)), g.offset(t, bias)))]


@operator("Where")
def where(g, x, a, n):
    return [g.where(value(g, x[0]), value(g, x[1]), value(g, x[2]))]


@operator("Dropout")
def dropout(g, x, a, n):
    if len(x) > 2 and x[2] is not None and known(x[2]):
        raise Refused("dropout with a seed of ONNX")
    if n > 1:
        raise Refused("dropout's mask")
    return [g.scale(value(g, x[0]), 1.0)]


@operator("MatMul")
def matmul(g, x, a, n):
    if len(extents(g, x[0])) < 2 or len(extents(g, x[1])) < 2:
        raise Refused("a product of vectors")
    return [g.matmul(value(g, x[0]), value(g, x[1]), 0, 0)]


@operator("Gemm")
def gemm(g, x, a, n):
    product = g.matmul(value(g, x[0]), value(g, x[1]), a.get("transA", 0), a.get("transB", 0))
    product = g.scale(product, f(a, "alpha", 1))
    return [g.add(product, g.scale(value(g, x[2]), f(a, "beta", 1))) if len(x) > 2 else product]


def images(g, x):
    if len(extents(g, x)) != 4:
        raise Refused("images of other than two dimensions")
    return g.permute(value(g, x), shape_of([0, 2, 3, 1]))


def pads_of(g, x, a, kernel, stride, dilation):
    auto = a.get("auto_pad", b"NOTSET")
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        before, after = [], []
        for size, k, s, d in zip(extents(g, x)[2:], kernel, stride, dilation):
            total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
            low = total // 2 if auto == b"SAME_UPPER" else total - total // 2
            before.append(low), after.append(total - low)
        return before, after
    pads = [0, 0, 0, 0] if auto == b"VALID" else a.get("pads", [0, 0, 0, 0])
    return list(pads[:2]), list(pads[2:])


def back(g, y):
    return g.permute(y, shape_of([0, 3, 1, 2]))


@operator("Conv")
def conv(g, x, a, n):
    kernel = extents(g, x[1])[2:]
    t = images(g, x[0])
    stride, dilation = a.get("strides", [1, 1]), a.get("dilations", [1, 1])
    before, after = pads_of(g, x[0], a, kernel, stride, dilation)
    if before != after:
        t = g.pad(t, shape_of([0, *before, 0]), shape_of([0, *after, 0]))
        before = [0, 0]
    weight = g.permute(value(g, x[1]), shape_of([2, 3, 1, 0]))
    options = Conv(ctypes.sizeof(Conv), pair(stride), pair(before), pair(dilation), a.get("group", 1))
    bias = value(g, x[2]) if len(x) > 2 else 0
    return [back(g, g.conv2d(t, weight, bias, options))]


@operator("ConvTranspose")
def conv_transpose(g, x, a, n):
    if "output_shape" in a or a.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise Refused("a transposed convolution by its output's shape")
    pads = a.get("pads", [0, 0, 0, 0])
    t = images(g, x[0])
    weight = g.permute(value(g, x[1]), shape_of([2, 3, 1, 0]))
    options = Conv(ctypes.sizeof(Conv), pair(a.get("strides", [1, 1])), pair(pads[:2]), pair(a.get("dilations", [1, 1])),
                   a.get("group", 1), pair(a.get("output_padding", [0, 0])))
    if pads[:2] != pads[2:]:
        raise Refused("a transposed convolution with other padding on each side")
    y = g.conv2d_transpose(t, weight, options)
    return [back(g, g.bias(y, value(g, x[2])) if len(x) > 2 else y)]


def pooling(name):
    def lower(g, x, a, n):
        kernel, stride = a["kernel_shape"], a.get("strides", [1, 1])
        if n > 1 or a.get("ceil_mode") or a.get("dilations", [1, 1]) != [1, 1]:
            raise Refused("pooling with indices, dilation or a size rounded up")
        t = images(g, x[0])
        before, after = pads_of(g, x[0], a, kernel, stride, [1, 1])
        if before != after:
            raise Refused("pooling with other padding on each side")
        count = 1 if a.get("count_include_pad", 0) else 2
        options = Pool(ctypes.sizeof(Pool), pair(kernel), pair(stride), pair(before), count)
        return [back(g, getattr(g, name)(t, options))]
    return lower


OPERATORS.update({"MaxPool": pooling("max_pool2d"), "AveragePool": pooling("average_pool2d")})


@operator("GlobalMaxPool")
def global_max(g, x, a, n):
    return [back(g, g.adaptive_max_pool2d(images(g, x[0]), 1, 1))]


def centred(g, x, axes, epsilon, centre=True):
    """x less its mean, over its deviation."""
    d = g.sub(x, g.mean(x, axes, 1)) if centre else x
    deviation = g.sqrt(g.offset(g.mean(g.mul(d, d), axes, 1), epsilon))
    return g.div(d, deviation), deviation


@operator("BatchNormalization")
def batch_norm(g, x, a, n):
    if a.get("training_mode"):
        raise Refused("batch norm that also returns running statistics")
    rank = len(extents(g, x[0]))
    t, scale, bias, mean, variance = [value(g, v) for v in x]
    column = shape_of([-1] + [1] * (rank - 2))
    scale, bias, mean, variance = [g.reshape(v, column) for v in (scale, bias, mean, variance)]
    unit = g.div(g.sub(t, mean), g.sqrt(g.offset(variance, f(a, "epsilon", 1e-5))))
    return [g.add(g.mul(unit, scale), bias)]


@operator("InstanceNormalization")
def instance_norm(g, x, a, n):
    t, weight, bias = [value(g, v) for v in x]
    rank = len(extents(g, x[0]))
    last = [0, *range(2, rank), 1]
    y = g.instance_norm(g.permute(t, shape_of(last)), weight, bias, f(a, "epsilon", 1e-5))
    return [g.permute(y, shape_of([0, rank - 1, *range(1, rank - 1)]))]


@operator("GroupNormalization")
def group_norm(g, x, a, n):
    t, weight, bias = [value(g, v) for v in x]
    rank = len(extents(g, x[0]))
    y = g.group_norm(g.permute(t, shape_of([0, *range(2, rank), 1])), a["num_groups"], weight, bias, f(a, "epsilon", 1e-5))
    return [g.permute(y, shape_of([0, rank - 1, *range(1, rank - 1)]))]


def row_norm(g, x, a, n, centre):
    shape = extents(g, x[0])
    axis = a.get("axis", -1) % len(shape)
    columns = math.prod(shape[axis:])
    flat = g.reshape(value(g, x[0]), shape_of([-1, columns]))
    scale = value(g, x[1])
    if math.prod(extents(g, x[1])) != columns:
        raise Refused("a norm's weight that broadcasts")
    scale = g.reshape(scale, shape_of([columns]))
    epsilon = f(a, "epsilon", 1e-5)
    if centre:
        bias = g.reshape(value(g, x[2]), shape_of([columns])) if len(x) > 2 else 0
        y = g.layer_norm(flat, scale, bias, epsilon)
    else:
        y = g.rms_norm(flat, scale, epsilon)
    outputs = [g.reshape(y, shape_of(shape))]
    if n > 1:  # the mean and one over the deviation of each row
        each = shape_of(shape[:axis] + [1] * (len(shape) - axis))
        deviation = centred(g, flat, shape_of([1]), epsilon, centre)[1]
        outputs += [g.reshape(g.mean(flat, shape_of([1]), 1), each),
                    g.reshape(g.div(constant(g, 1), deviation), each)]
    return outputs[:n]


OPERATORS["LayerNormalization"] = lambda g, x, a, n: row_norm(g, x, a, n, True)
OPERATORS["RMSNormalization"] = lambda g, x, a, n: row_norm(g, x, a, n, False)


@operator("MeanVarianceNormalization")
def mean_variance(g, x, a, n):
    return [centred(g, value(g, x[0]), shape_of(a.get("axes", [0, 2, 3])), 1e-9)[0]]


def reduction(before, name="sum", after=lambda g, x: x):
    def lower(g, x, a, n):
        axes = a.get("axes", known(x[1]).tolist() if len(x) > 1 and x[1] is not None else [])
        t = before(g, value(g, x[0]))
        if not axes and a.get("noop_with_empty_axes"):
            return [after(g, g.scale(t, 1.0))]
        if 0 in extents(g, x[0]):
            raise Refused("a tensor without elements")
        rank = len(extents(g, x[0]))
        return [after(g, getattr(g, name)(t, shape_of(axes or range(rank)), a.get("keepdims", 1)))]
    return lower


def plain(g, x):
    return x


OPERATORS.update({
    "ReduceSum": reduction(plain), "ReduceMean": reduction(plain, "mean"),
    "ReduceL1": reduction(lambda g, x: g.abs(x)), "ReduceSumSquare": reduction(lambda g, x: g.mul(x, x)),
    "ReduceL2": reduction(lambda g, x: g.mul(x, x), "sum", lambda g, x: g.sqrt(x)),
    "ReduceLogSum": reduction(plain, "sum", lambda g, x: g.log(x)),
    "ReduceLogSumExp": reduction(lambda g, x: g.exp(x), "sum", lambda g, x: g.log(x)),
})


@operator("Reshape")
def reshape(g, x, a, n):
    wanted, shape = known(x[1]).tolist(), extents(g, x[0])
    if not a.get("allowzero"):
        wanted = [shape[i] if e == 0 else e for i, e in enumerate(wanted)]
    if isinstance(x[0], np.ndarray) and x[0].dtype != np.float32:
        return [x[0].reshape(wanted)]
    return [g.reshape(value(g, x[0]), shape_of(wanted))]


@operator("Flatten")
def flatten(g, x, a, n):
    shape = extents(g, x[0])
    axis = a.get("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return [g.reshape(value(g, x[0]), shape_of([math.prod(shape[:axis]), math.prod(shape[axis:])]))]


def squeeze(g, x, a, n):
    shape = extents(g, x[0])
    axes = known(x[1]).tolist() if len(x) > 1 else a.get("axes", [i for i, e in enumerate(shape) if e == 1])
    axes = [axis % len(shape) for axis in axes]
    return [g.reshape(value(g, x[0]), shape_of([e for i, e in enumerate(shape) if i not in axes]))]


def unsqueeze(g, x, a, n):
    shape = list(extents(g, x[0]))
    axes = known(x[1]).tolist() if len(x) > 1 else a["axes"]
    rank = len(shape) + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        shape.insert(axis, 1)
    return [g.reshape(value(g, x[0]), shape_of(shape))]


OPERATORS.update({"Squeeze": squeeze, "Unsqueeze": unsqueeze})


@operator("Transpose")
def transpose(g, x, a, n):
    rank = len(extents(g, x[0]))
    return [g.permute(value(g, x[0]), shape_of(a.get("perm", list(range(rank))[::-1])))]


@operator("Concat")
def concat(g, x, a, n):
    parts = [value(g, v) for v in x]
    array = (ctypes.c_uint32 * len(parts))(*[p.value for p in parts])
    return [g.concat(array, len(parts), a["axis"])]


@operator("Slice")
def lower_slice(g, x, a, n):
    shape = extents(g, x[0])
    rank = len(shape)
    begin, end, step = [0] * rank, list(shape), [1] * rank
    axes = known(x[3]).tolist() if len(x) > 3 and x[3] is not None else range(len(known(x[1])))
    steps = known(x[4]).tolist() if len(x) > 4 else [1] * len(known(x[1]))
    for axis, b, e, s in zip(axes, known(x[1]).tolist(), known(x[2]).tolist(), steps):
        axis %= rank
        if s < 1:
            raise Refused("a slice that goes backwards")
        begin[axis], end[axis], _ = slice(b, e, s).indices(shape[axis])
        step[axis] = s
    return [g.slice(value(g, x[0]), shape_of(begin), shape_of(end), shape_of(step))]


@operator("Split")
def split(g, x, a, n):
    shape = extents(g, x[0])
    axis = a.get("axis", 0) % len(shape)
    part = -(-shape[axis] // n)
    sizes = known(x[1]).tolist() if len(x) > 1 else [min(part, shape[axis] - i * part) for i in range(n)]
    t, results, at = value(g, x[0]), [], 0
    for size in sizes:
        begin, end = [0] * len(shape), list(shape)
        begin[axis], end[axis] = at, at + size
        at += size
        results.append(g.slice(t, shape_of(begin), shape_of(end), shape_of([1] * len(shape))))
    return results


@operator("Pad")
def pad(g, x, a, n):
    number = float(known(x[2])) if len(x) > 2 and x[2] is not None else 0.0
    pads, rank = known(x[1]).tolist(), len(extents(g, x[0]))
    if a.get("mode", b"constant") != b"constant" or number != 0 or len(x) > 3 or min(pads) < 0:
        raise Refused("padding by other than zeros")
    return [g.pad(value(g, x[0]), shape_of(pads[:rank]), shape_of(pads[rank:]))]


@operator("Expand")
def expand(g, x, a, n):
    return [g.mul(value(g, x[0]), g.input(np.ones(known(x[1]).tolist(), np.float32)))]


@operator("Gather")
def gather(g, x, a, n):
    shape, ids = extents(g, x[0]), known(x[1])
    if a.get("axis", 0) % len(shape) != 0 or len(shape) < 2:
        raise Refused("gathering along other than the first axis")
    rows = g.reshape(value(g, x[0]), shape_of([shape[0], math.prod(shape[1:])]))
    made = g.embedding(rows, g.input((ids % shape[0]).astype(np.uint32)))
    return [g.reshape(made, shape_of([*ids.shape, *shape[1:]]))]


def likelihood(g, logarithms, x, a):
    """Of {N, classes, ...} logarithms of probabilities and known labels {N, ...}: ONNX's negative log-likelihood."""
    shape, labels = extents(g, x[0]), known(x[1]).astype(np.int64)
    counted = labels != a["ignore_index"] if "ignore_index" in a else np.ones(labels.shape, bool)
    weights = known(x[2]) if len(x) > 2 and x[2] is not None else np.ones(shape[1], np.float32)
    share = np.where(counted, weights[np.where(counted, labels, 0)], 0).astype(np.float32)
    classes = np.arange(shape[1]).reshape([1, -1] + [1] * (len(shape) - 2))
    chosen = np.expand_dims(share, 1) * (classes == np.expand_dims(labels, 1))
    terms = g.mul(logarithms, g.input(chosen.astype(np.float32)))
    how = a.get("reduction", b"mean")
    if how == b"none":
        return g.scale(g.sum(terms, shape_of([1]), 0), -1.0)
    return g.scale(g.sum(terms, shape_of(range(len(shape))), 0), -1.0 / (float(share.sum()) if how == b"mean" else 1.0))


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(g, x, a, n):
    return [likelihood(g, value(g, x[0]), x, a)]


@operator("SoftmaxCrossEntropyLoss")
def cross_entropy(g, x, a, n):
    if len(x) > 2 or n > 1 or a.get("reduction", b"mean") != b"mean":
        logarithms = g.log_softmax(value(g, x[0]), 1)
        return [likelihood(g, logarithms, x, a), logarithms][:n]
    rank, classes = len(extents(g, x[0])), extents(g, x[0])[1]
    last = g.permute(value(g, x[0]), shape_of([0, *range(2, rank), 1]))
    logits = g.reshape(last, shape_of([-1, classes]))
    ignore = a.get("ignore_index", -1) % 2**32
    labels = (known(x[1]).reshape(-1).astype(np.int64) % 2**32).astype(np.uint32)
    return [g.cross_entropy(logits, g.input(labels), 0.0, ctypes.c_uint32(ignore))]


@operator("Constant")
def lower_constant(g, x, a, n):
    from onnx import numpy_helper
    for key, made in a.items():
        if key == "value":
            return [numpy_helper.to_array(made)]
        if key in ("value_float", "value_floats"):
            return [np.array(made, np.float32)]
        if key in ("value_int", "value_ints"):
            return [np.array(made, np.int64)]
    raise Refused("a constant of another kind")


@operator("CastLike")
def cast_like(g, x, a, n):
    """Of a constant, as functions in terms of other operators have it."""
    if isinstance(x[0], np.ndarray) and x[0].size == 1 and (not isinstance(x[1], np.ndarray) or x[1].dtype == np.float32):
        return [x[0].astype(np.float32)]
    raise Refused("a cast of what is no constant")


@operator("Shape")
def lower_shape(g, x, a, n):
    return [np.array(extents(g, x[0])[a.get("start", 0):a.get("end", None)], np.int64)]


@operator("Attention")
def attention(g, x, a, n):
    if n > 1 or len(x) > 3 or set(a) - {"is_causal", "scale"} or len(extents(g, x[0])) != 4:
        raise Refused("attention with masks, caches, caps or packed heads")
    options = Attention(ctypes.sizeof(Attention), a.get("is_causal", 0), f(a, "scale", 0))
    return [g.attention(*[value(g, v) for v in x], options)]
