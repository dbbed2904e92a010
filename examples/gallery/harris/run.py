"""Harris's corner detector: an image pipeline of ten small stages."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"H": 720, "W": 1280}
SMALL = {"H": 7, "W": 9}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).harris


def inputs(generator, H, W):
    return {"image": torch.rand((H, W), generator=generator)}


def peers(image):
    sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 12
    sobel = torch.stack([sobel, sobel.T])[:, None]
    ones = torch.ones(3, 1, 3, 3)

    def composed():
        gx, gy = F.conv2d(F.pad(image[None, None], (2, 2, 2, 2), "replicate"), sobel)[0]
        products = torch.stack([gx * gx, gy * gy, gx * gy])[None]
        xx, yy, xy = F.conv2d(products, ones, groups=3)[0]
        return xx * yy - xy * xy - 0.04 * (xx + yy) ** 2

    return {"torch": composed}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("harris: the results agree")
