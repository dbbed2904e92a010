"""JAX: XLA on the CPU, jitted."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from protocol import Unsupported, Variant, circulant, serve, shift_positions

VERSION = "jax " + jax.__version__
HIGHEST = lax.Precision.HIGHEST


def convolution(w):
    dims = int(w["operator"][4])
    if w["operator"].endswith("transpose"):
        pad = w["inputs"]["W"][-1] - 1 - w["padding"]

        def transposed(x, weight):
            mirrored = jnp.flip(jnp.swapaxes(weight, 0, 1), range(2, 2 + dims))
            return lax.conv_general_dilated(x, mirrored, [1] * dims, [(pad, pad + w["output_padding"])] * dims,
                                            lhs_dilation=[w["stride"]] * dims, precision=HIGHEST)  # fmt: skip

        return transposed

    def direct(x, weight, bias=None):
        out = lax.conv_general_dilated(
            x, weight, [w["stride"]] * dims, [(w["padding"],) * 2] * dims, rhs_dilation=[w["dilation"]] * dims,
            feature_group_count=w["groups"], precision=HIGHEST)  # fmt: skip
        return out if bias is None else out + bias.reshape([1, -1] + [1] * dims)

    return direct


def bcm_project(w):
    rows, columns = w["inputs"]["X"]
    b = w["block"]
    diagonal, spread = circulant(b)
    k = np.arange(b)

    def call(x):
        blocks = x.reshape(rows // b, b, columns // b, b).transpose(0, 2, 1, 3)
        mean = blocks[:, :, k[:, None], diagonal.T].mean(2)
        return mean[:, :, spread].transpose(0, 2, 1, 3).reshape(rows, columns)

    return call


def bcm_mm(w):
    rows, columns = w["output"][1], w["inputs"]["X"][1]
    index = circulant(w["block"])[1].T
    return lambda x, weight: jnp.matmul(
        x, weight[:, :, index].transpose(0, 2, 1, 3).reshape(rows, columns).T, precision=HIGHEST
    )


def mlp(x, *params):
    for weight, bias in zip(params[::2], params[1::2], strict=True):
        x = jax.nn.relu(jnp.matmul(x, weight.T, precision=HIGHEST) + bias)
    return x


def lut(*inputs):
    return jnp.concatenate([table[words].sum(1) for table, words in zip(inputs[::2], inputs[1::2], strict=True)], 1)


def conv_relu(x, weight, bias):
    return jax.nn.relu(lax.conv_general_dilated(x, weight, (1, 1), "VALID") + bias[None, :, None, None])


def separable(x, depth, point, bias):
    t = lax.conv_general_dilated(x, depth[:, None], (1, 1), [(1, 1)] * 2, feature_group_count=x.shape[1])
    return jax.nn.relu(jnp.einsum("oc,nchw->nohw", point, t) + bias[None, :, None, None])


def function(w):
    """The jitted function; its arguments are the inputs in order."""
    operator = w["operator"]
    if operator in ("gemm", "bmm"):
        ta, tb = w["transpose_a"], w["transpose_b"]
        swap = lambda a, yes: jnp.swapaxes(a, -1, -2) if yes else a  # noqa: E731
        return lambda a, b: jnp.matmul(swap(a, ta), swap(b, tb), precision=HIGHEST)
    if operator in ("bcm_project", "bcm_mm"):
        return {"bcm_project": bcm_project, "bcm_mm": bcm_mm}[operator](w)
    simple = {
        "gemv": lambda a, x: a @ x,
        "bilinear": lambda a, b, c: jnp.einsum("ik,jkl,il->ij", a, b, c, precision=HIGHEST),
        "mttkrp": lambda a, b, c: jnp.einsum("ikl,kj,lj->ij", a, b, c, precision=HIGHEST),
        "mlp": mlp,
        "lut": lut,
        "conv_relu": conv_relu,
        "dwsep": separable,
    }
    if operator in simple:
        return simple[operator]
    if operator.startswith("conv"):
        return convolution(w)
    raise Unsupported


def build(workload, inputs):
    if workload["operator"] == "shift":
        pad = (workload["kernel"] - 1) // 2
        positions = jnp.asarray(shift_positions(workload, inputs("idx")))
        border = ((0, 0), (pad, pad), (pad, pad), (0, 0))
        jitted = jax.jit(lambda x: jnp.take(jnp.pad(x, border).reshape(-1), positions, mode="clip"))
        arguments = [jnp.asarray(inputs("X"))]
    else:
        jitted = jax.jit(function(workload))
        arguments = [jnp.asarray(inputs(name)) for name in workload["inputs"]]
    call = lambda: jitted(*arguments).block_until_ready()  # noqa: E731
    call()
    return {"jit": Variant(call, lambda: np.asarray(call()))}


def overhead():
    a = jnp.ones((1, 1))
    jitted = jax.jit(lambda a: a @ a)
    return Variant(lambda: jitted(a).block_until_ready(), lambda: jitted(a))


if __name__ == "__main__":
    serve(sys.modules[__name__])
