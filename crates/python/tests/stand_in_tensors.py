"""Tensors on the device of a stand-in for CUDA's driver, as other libraries would have them: by the capsules of DLPack, and
by its table of C functions. Nothing here says anything about a graphics processor: it shows that addresses and streams
are passed on as the protocol wants it.

    python stand_in_tensors.py libcuda.so.1 gemm.tc
"""

import ctypes as C
import sys
import types

import numpy as np

P = C.c_void_p
DRIVER = C.CDLL(sys.argv[1], mode=C.RTLD_GLOBAL)
DRIVER.cuMemAlloc_v2.argtypes = [C.POINTER(C.c_uint64), C.c_size_t]
DRIVER.cuStreamSynchronize.argtypes = [P]
DRIVER.stand_in_pending.argtypes = [P]
DRIVER.stand_in_pending.restype = C.c_size_t
DRIVER.stand_in_calls.restype = C.c_char_p

import tensorwright as tw  # noqa: E402

CUDA, FLOAT, STREAM, DEFAULT_STREAM = 2, 2, 77, 1


class Tensor(C.Structure):
    _fields_ = [("data", P), ("kind", C.c_int32), ("number", C.c_int32), ("ndim", C.c_int32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)), ("strides", P),
                ("offset", C.c_uint64)]  # fmt: skip


class Managed(C.Structure):
    _fields_ = [("major", C.c_uint32), ("minor", C.c_uint32), ("context", P), ("deleter", P), ("flags", C.c_uint64),
                ("tensor", Tensor)]  # fmt: skip


new_capsule = C.pythonapi.PyCapsule_New
new_capsule.argtypes, new_capsule.restype = [P, C.c_char_p, P], C.py_object


class Array:
    """Memory of the device, with the values of an array."""

    def __init__(self, values, device=0):
        values = np.ascontiguousarray(values, "float32")
        address = C.c_uint64()
        assert DRIVER.cuMemAlloc_v2(C.byref(address), max(values.nbytes, 1)) == 0
        self.address, self.shape, self.device, self.asked = address.value, values.shape, device, []
        C.memmove(self.address, values.ctypes.data, values.nbytes)

    def tensor(self):
        self.extents = (C.c_int64 * len(self.shape))(*self.shape)
        return Tensor(self.address, CUDA, self.device, len(self.shape), FLOAT, 32, 1, self.extents, None, 0)

    def numpy(self):
        return np.ctypeslib.as_array((C.c_float * int(np.prod(self.shape))).from_address(self.address)).reshape(self.shape)

    def __dlpack_device__(self):
        return CUDA, self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        self.managed = Managed(1, 0, None, None, 0, self.tensor())
        return new_capsule(C.addressof(self.managed), b"dltensor_versioned", None)


class Tabled(Array):
    """The same with the C table, as PyTorch's tensors have it."""

    __torch_function__ = None
    __dlpack__ = None


def empty(shape, dtype, device):
    assert (dtype, device) == ("float32", "cuda:0")
    return Tabled(np.full(shape, np.nan))


@C.PYFUNCTYPE(C.c_int, C.py_object, C.POINTER(Tensor))
def fill(array, out):
    out[0] = array.tensor()
    return 0


@C.CFUNCTYPE(C.c_int, C.c_int32, C.c_int32, C.POINTER(P))
def current_stream(kind, number, out):
    assert kind == CUDA
    out[0] = STREAM
    return 0


TABLE = (P * 7)(
    1 | 3 << 32, None, None, None, None, *(C.cast(f, P).value for f in (fill, current_stream))
)
Tabled.__dlpack_c_exchange_api__ = new_capsule(C.addressof(TABLE), b"dlpack_exchange_api", None)

# What makes results is PyTorch's class: here, this one.
torch = types.ModuleType("torch")
torch.Tensor, torch.device, torch.float32, torch.empty = Tabled, str, "float32", empty
sys.modules["torch"] = torch

with open(sys.argv[2]) as file:
    TEXT = file.read()
gemm = tw.define(TEXT, target="cuda:0").gemm
rng = np.random.default_rng(1)
a, b = (rng.integers(-3, 4, (32, 32)).astype("float32") for _ in range(2))


def refused(what, *arguments, **named):
    try:
        what(*arguments, **named)
    except tw.ArgumentError as error:
        return str(error)
    raise AssertionError("nothing was refused")


# Capsules: ready on the default stream, and the results are there when the call returns.
out = Array(np.full((32, 32), np.nan))
x, y = Array(a), Array(b)
gemm(x, y, 2.0, out=out)
assert x.asked == [DEFAULT_STREAM], x.asked
np.testing.assert_array_equal(out.numpy(), 2 * (a @ b))
assert DRIVER.stand_in_pending(DEFAULT_STREAM) == 0

# The table: in the order of the stream that its library works on, and nobody waits.
x, y = Tabled(a), Tabled(b)
results = []
for scale in (3.0, 4.0):
    found = gemm(x, y, scale)
    assert type(found) is Tabled and np.isnan(found.numpy()).all(), "nobody has waited"
    results.append(found)
assert DRIVER.stand_in_pending(STREAM) > 0
assert DRIVER.cuStreamSynchronize(STREAM) == 0
np.testing.assert_array_equal(results[1].numpy(), 4 * (a @ b))
np.testing.assert_array_equal(results[0].numpy(), 3 * (a @ b))

# No copy of a tensor: the calls of the driver that brought values brought the numbers only.
calls = DRIVER.stand_in_calls().decode().split()
assert "cuMemcpyDtoH_v2" not in calls, calls
assert calls.count("cuMemcpyHtoDAsync_v2") == 3, calls

# Tensors in the memory of the process are copied, as for every device.
np.testing.assert_array_equal(gemm(a, b, 1.0), a @ b)

assert refused(gemm, x, b, 1.0) == (
    "gemm: `A` is on cuda:0, and `B` in the CPU's memory; pass tensors of one device"
)
assert refused(tw.define(TEXT).gemm, x, y, 1.0) == (
    "gemm: `A` is on cuda:0, and the operator is compiled for native; define it with target=\"cuda:0\", or pass .cpu()"
)
assert refused(gemm, Tabled(a, device=1), y, 1.0).startswith("gemm: `A` is on cuda:1, and the operator is compiled for cuda:0")
assert refused(gemm, Array(a), Array(b), 1.0) == (
    "the result `C` is on cuda:0, and its library is not known to make tensors there; pass `out=`"
)
assert refused(gemm, x, y, 1.0, out=np.empty((32, 32), "float32")) == (
    "gemm: `out` for `C` is on cpu, and the arguments are on cuda:0; pass tensors of one device"
)
print("tensors on a device: all right")
