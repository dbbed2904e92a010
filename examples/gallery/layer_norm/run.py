"""Layer normalisation: two reductions and an element-wise stage per row."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"N": 512, "D": 768}
SMALL = {"N": 5, "D": 24}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).layer_norm


def inputs(generator, N, D):
    shapes = {"x": (N, D), "gamma": (D,), "beta": (D,)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()} | {"eps": 1e-5}


def peers(x, gamma, beta, eps):
    def composed():
        centred = x - x.mean(1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(1, keepdim=True) + eps) * gamma + beta

    return {"torch": composed, "torch layer_norm": lambda: F.layer_norm(x, gamma.shape, gamma, beta, eps)}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("layer_norm: the results agree")
