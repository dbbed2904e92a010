"""A bilinear layer: a contraction of three tensors."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"N": 64, "P": 128, "M": 64, "Q": 128}
SMALL = {"N": 3, "P": 4, "M": 5, "Q": 6}
TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).bilinear


def inputs(generator, N, P, M, Q):
    shapes = {"A": (N, P), "B": (M, P, Q), "C": (N, Q)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def peers(A, B, C):
    return {
        "torch": lambda: torch.einsum("ik,jkl,il->ij", A, B, C),
        "torch bilinear": lambda: F.bilinear(A, C, B),
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("bilinear: the results agree")
