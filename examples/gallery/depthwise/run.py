"""Depthwise convolution, as in MobileNet: every channel has its own filter."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"N": 1, "C": 128, "H": 56, "W": 56}
SMALL = {"N": 2, "C": 3, "H": 6, "W": 7}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).depthwise_conv2d


def inputs(generator, N, C, H, W):
    image = torch.randn((N, C, H, W), generator=generator)
    return {"image": image, "weight": torch.randn((C, 3, 3), generator=generator), "s": 1, "p": 1}


def peers(image, weight, s, p):
    weight = weight[:, None]
    last, last_weight = (t.contiguous(memory_format=torch.channels_last) for t in (image, weight))
    return {
        "torch": lambda: F.conv2d(image, weight, stride=s, padding=p, groups=len(weight)),
        "torch channels-last": lambda: F.conv2d(last, last_weight, stride=s, padding=p, groups=len(weight)),
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("depthwise: the results agree")
