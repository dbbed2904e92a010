"""Kernel density: at each of M places, the mean of Gaussians around N points."""

import pathlib

import tensorwright as tw
import torch

SIZES = {"M": 1024, "N": 4096, "D": 6}
SMALL = {"M": 7, "N": 33, "D": 4}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).density


def inputs(generator, M, N, D):
    shapes = {"at": (M, D), "points": (N, D)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()} | {"width": 0.5}


def peers(at, points, width):
    def by_differences():
        squares = (at[:, None] - points).square().sum(2)
        return torch.exp(-squares / (2 * width * width)).mean(1)

    def by_cdist():
        return torch.exp(-torch.cdist(at, points).square() / (2 * width * width)).mean(1)

    return {"torch": by_differences, "torch cdist": by_cdist}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("density: the results agree")
