"""The gated, dilated, causal convolution of WaveNet."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"N": 1, "C": 32, "L": 8192, "K": 32, "d": 8}
SMALL = {"N": 2, "C": 3, "L": 20, "K": 4, "d": 4}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).wavenet


def inputs(generator, N, C, L, K, d):
    shapes = {"x": (N, C, L), "filter": (K, C, 2), "gate": (K, C, 2)}
    return {name: torch.randn(shape, generator=generator) / C**0.5 for name, shape in shapes.items()} | {"d": d}


def peers(x, filter, gate, d):
    # conv1d counts taps from the past to the present.
    filter, gate = filter.flip(2), gate.flip(2)
    both = torch.cat([filter, gate])
    past = (filter.shape[2] - 1) * d

    def composed():
        padded = F.pad(x, (past, 0))
        return torch.tanh(F.conv1d(padded, filter, dilation=d)) * torch.sigmoid(F.conv1d(padded, gate, dilation=d))

    def in_one_convolution():
        f, g = F.conv1d(F.pad(x, (past, 0)), both, dilation=d).chunk(2, dim=1)
        return torch.tanh(f) * torch.sigmoid(g)

    return {"torch": composed, "torch, one convolution": in_one_convolution}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("wavenet: the results agree")
