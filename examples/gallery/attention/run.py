"""Attention of one head: scores, softmax and the weighted sum in one kernel."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"L": 512, "S": 512, "D": 64, "E": 64}
SMALL = {"L": 9, "S": 13, "D": 8, "E": 5}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).attention


def inputs(generator, L, S, D, E):
    shapes = {"Q": (L, D), "K": (S, D), "V": (S, E)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def peers(Q, K, V):
    q, k, v = Q[None, None], K[None, None], V[None, None]
    return {
        "torch": lambda: torch.softmax(Q @ K.T / Q.shape[1] ** 0.5, dim=1) @ V,
        "torch scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(q, k, v)[0, 0],
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("attention: the results agree")
