"""Grouped convolution, as in ResNeXt: many small convolutions side by side."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"N": 2, "C": 256, "H": 28, "W": 28, "K": 256, "g": 32}
SMALL = {"N": 2, "C": 8, "H": 6, "W": 7, "K": 12, "g": 4}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).group_conv2d


def inputs(generator, N, C, H, W, K, g):
    image = torch.randn((N, C, H, W), generator=generator)
    weight = torch.randn((K, C // g, 3, 3), generator=generator)
    return {"image": image, "weight": weight, "g": g, "s": 1, "p": 1}


def peers(image, weight, g, s, p):
    last, last_weight = (t.contiguous(memory_format=torch.channels_last) for t in (image, weight))
    return {
        "torch": lambda: F.conv2d(image, weight, stride=s, padding=p, groups=g),
        "torch channels-last": lambda: F.conv2d(last, last_weight, stride=s, padding=p, groups=g),
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("grouped_conv: the results agree")
