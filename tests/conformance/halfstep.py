"""The C interface (engine/bindings/c/halfstep.h), as much of it as node tests need, by ctypes."""
import ctypes as c
import struct
import tempfile

import numpy as np


class Shape(c.Structure):
    _fields_ = [("rank", c.c_int64), ("extent", c.c_int64 * 8)]


class Values(c.Structure):
    _fields_ = [("name", c.c_char_p), ("f32", c.c_void_p), ("u32", c.c_void_p), ("count", c.c_size_t)]


class Conv(c.Structure):
    _fields_ = [("size", c.c_size_t), ("stride", c.c_int64 * 2), ("padding", c.c_int64 * 2), ("dilation", c.c_int64 * 2),
                ("groups", c.c_int64), ("output_padding", c.c_int64 * 2)]


class Pool(c.Structure):
    _fields_ = [("size", c.c_size_t), ("kernel", c.c_int64 * 2), ("stride", c.c_int64 * 2), ("padding", c.c_int64 * 2),
                ("count_padding", c.c_uint32)]


class Attention(c.Structure):
    _fields_ = [("size", c.c_size_t), ("causal", c.c_uint32), ("scale", c.c_float), ("window", c.c_int64),
                ("key_lengths", c.c_uint32), ("segments", c.c_uint32), ("mask", c.c_uint32), ("dropout", c.c_float),
                ("fused", c.c_uint32)]


F32, U32 = 1, 4


class Refused(Exception):
    """Halfstep has no such operator, or not for these shapes or types."""


def shape_of(extents):
    return Shape(len(extents), (c.c_int64 * 8)(*extents))


def pair(two):
    return (c.c_int64 * 2)(*two)


class Library:
    def __init__(self, path):
        self.c = c.CDLL(path)
        self.c.hs_error_text.restype = c.c_char_p
        self.device = c.c_void_p()
        self.check(self.c.hs_device_open(None, None, c.byref(self.device)))
        # Weights of a graph without parameters, which predictors ask for.
        self.weights = tempfile.NamedTemporaryFile(suffix=".safetensors")
        self.weights.write(struct.pack("<Q", 2) + b"{}")
        self.weights.flush()

    def check(self, status):
        if status != 0:
            raise Refused(self.c.hs_error_text().decode())


class Graph:
    """A graph whose operators are called by their names in C, without hs_: g.add(a, b)."""

    def __init__(self, library):
        self.loaded = library
        self.handle = c.c_void_p()
        library.check(library.c.hs_graph_create(c.byref(self.handle)))
        self.fed = []
        self.uses = {}  # the inputs that a tensor is computed of

    def close(self):
        self.loaded.c.hs_graph_free(self.handle)

    def input(self, array):
        dtype = U32 if array.dtype == np.uint32 else F32
        array = np.ascontiguousarray(array, np.uint32 if dtype == U32 else np.float32)
        name = b"in%d" % len(self.fed)
        tensor = self.call("input", name, dtype, shape_of(array.shape))
        self.uses[tensor.value] = {len(self.fed)}
        self.fed.append((name, array))
        return tensor

    def __getattr__(self, name):
        return lambda *arguments: self.call(name, *arguments)

    def call(self, name, *arguments):
        function = getattr(self.loaded.c, "hs_" + name)
        function.restype = c.c_uint32
        made = [c.c_float(a) if isinstance(a, float) else
                c.c_int64(a) if isinstance(a, int) and not isinstance(a, bool) else
                c.byref(a) if isinstance(a, (Conv, Pool, Attention)) else a for a in arguments]
        tensor = function(self.handle, *made)
        self.loaded.check(self.loaded.c.hs_graph_status(self.handle))
        operands = [a.value for a in arguments if isinstance(a, c.c_uint32)]
        operands += [o for a in arguments if isinstance(a, c.Array) and a._type_ is c.c_uint32 for o in a]
        self.uses[tensor] = set().union(*(self.uses.get(o, set()) for o in operands))
        return c.c_uint32(tensor)

    def shape(self, tensor):
        dtype, shape = c.c_int(), Shape()
        self.loaded.check(self.loaded.c.hs_tensor_type(self.handle, tensor, c.byref(dtype), c.byref(shape)))
        return list(shape.extent[:shape.rank])

    def run(self, tensor):
        shape = self.shape(tensor)
        output = np.zeros(int(np.prod(shape)), np.float32)
        predictor = c.c_void_p()
        self.loaded.check(self.loaded.c.hs_predictor_create(self.loaded.device, self.handle, tensor, None,
                                                              c.byref(predictor)))
        self.loaded.check(self.loaded.c.hs_predictor_load_weights(predictor, self.loaded.weights.name.encode(), 0, None))
        fed = [self.fed[i] for i in sorted(self.uses[tensor.value])]
        values = (Values * max(1, len(fed)))()
        for value, (name, array) in zip(values, fed):
            address = array.ctypes.data
            is_label = array.dtype == np.uint32
            value.name, value.f32, value.u32, value.count = name, 0 if is_label else address, address if is_label else 0, array.size
        status = self.loaded.c.hs_predictor_run(predictor, values, c.c_size_t(len(fed)), output.ctypes.data_as(c.c_void_p),
                                                 c.c_size_t(output.size))
        self.loaded.c.hs_predictor_free(predictor)
        self.loaded.check(status)
        return output.reshape(shape)
