"""Two steps of heat flow on a plate: a stencil of nine points, applied twice."""

import pathlib

import numpy as np
import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"H": 720, "W": 1280}
SMALL = {"H": 7, "W": 9}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).heat


def inputs(generator, H, W):
    return {"u": torch.randn((H, W), generator=generator), "k": 0.2}


def peers(u, k):
    taps = k * torch.tensor([[1 / 6, 2 / 3, 1 / 6], [2 / 3, -10 / 3, 2 / 3], [1 / 6, 2 / 3, 1 / 6]])
    taps[1, 1] += 1

    def step(u):
        return F.conv2d(F.pad(u[None, None], (1, 1, 1, 1), "replicate"), taps[None, None])[0, 0]

    def sliced(pad, u):
        p = pad(u)
        H, W = u.shape
        shifted = [[p[y : y + H, x : x + W] for x in range(3)] for y in range(3)]
        cross = shifted[0][1] + shifted[2][1] + shifted[1][0] + shifted[1][2]
        corners = shifted[0][0] + shifted[0][2] + shifted[2][0] + shifted[2][2]
        return u + k * (cross - 4 * u) / 1.5 + k * (corners - 4 * u) / 6

    def by_torch(u):
        return sliced(lambda u: F.pad(u[None, None], (1, 1, 1, 1), "replicate")[0, 0], u)

    def by_numpy(u):
        return sliced(lambda u: np.pad(u, 1, "edge"), u)

    return {
        "torch": lambda: by_torch(by_torch(u)),
        "torch conv2d": lambda: step(step(u)),
        "NumPy": lambda: torch.from_numpy(by_numpy(by_numpy(u.numpy()))),
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("heat: the results agree")
