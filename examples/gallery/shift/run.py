"""The shift operator: every channel of an image moves by its own offset."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"N": 1, "H": 56, "W": 56, "C": 128}
SMALL = {"N": 2, "H": 5, "W": 6, "C": 7}
TOLERANCE = {"rtol": 0, "atol": 0}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).shift


def inputs(generator, N, H, W, C):
    idx = torch.randint(9, (C,), generator=generator, dtype=torch.int32)
    return {"X": torch.randn((N, H, W, C), generator=generator), "idx": idx, "k": 3}


def peers(X, idx, k):
    _, H, W, C = X.shape
    r = (k - 1) // 2
    ys = torch.arange(H)[:, None, None] + (idx // k).long()
    xs = torch.arange(W)[:, None] + (idx % k).long()
    channels = torch.arange(C)
    by_offset = [(divmod(o, k), torch.nonzero(idx == o)[:, 0]) for o in range(k * k)]

    def gathered():
        return F.pad(X, (0, 0, r, r, r, r))[:, ys, xs, channels]

    def by_slices():
        padded, out = F.pad(X, (0, 0, r, r, r, r)), torch.empty_like(X)
        for (dy, dx), some in by_offset:
            out[..., some] = padded[:, dy : dy + H, dx : dx + W, some]
        return out

    return {"torch": gathered, "torch slices": by_slices}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("shift: the results agree")
