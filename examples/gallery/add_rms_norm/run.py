"""A residual, then RMS normalisation and a scale: the step between the layers of a language model."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"N": 256, "D": 2048}
SMALL = {"N": 5, "D": 24}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).add_rms_norm


def inputs(generator, N, D):
    shapes = {"x": (N, D), "residual": (N, D), "gamma": (D,)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()} | {"eps": 1e-5}


def peers(x, residual, gamma, eps):
    def composed():
        both = x + residual
        return both, both * torch.rsqrt(both.square().mean(1, keepdim=True) + eps) * gamma

    def library():
        both = x + residual
        return both, F.rms_norm(both, gamma.shape, gamma, eps)

    return {"torch": composed, "torch rms_norm": library}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("add_rms_norm: the results agree")
