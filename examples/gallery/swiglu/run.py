"""A gated linear unit (SwiGLU): two products of one input, and the gate between them."""

import pathlib

import tensorwright as tw
import torch

SIZES = {"T": 64, "D": 512, "F": 1408}
SMALL = {"T": 5, "D": 16, "F": 12}
TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).swiglu


def inputs(generator, T, D, F):
    shapes = {"x": (T, D), "W": (F, D), "V": (F, D)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def peers(x, W, V):
    both = torch.cat([W, V])

    def in_one_product():
        gate, value = (x @ both.T).chunk(2, dim=1)
        return torch.nn.functional.silu(gate) * value

    return {
        "torch": lambda: torch.nn.functional.silu(x @ W.T) * (x @ V.T),
        "torch, one product": in_one_product,
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("swiglu: the results agree")
