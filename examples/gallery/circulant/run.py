"""A layer with a block-circulant matrix: each block of S by S is stored as one column."""

import pathlib

import tensorwright as tw
import torch

SIZES = {"N": 128, "P": 32, "Q": 32, "S": 16}
SMALL = {"N": 3, "P": 2, "Q": 3, "S": 4}
TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).circulant


def inputs(generator, N, P, Q, S):
    return {"X": torch.randn((N, Q * S), generator=generator), "w": torch.randn((P, Q, S), generator=generator)}


def peers(X, w):
    P, Q, S = w.shape
    places = (torch.arange(S)[:, None] - torch.arange(S)) % S
    dense = w[:, :, places].permute(0, 2, 1, 3).reshape(P * S, Q * S)
    spectrum = torch.fft.rfft(w)

    def by_fft():
        blocks = torch.fft.rfft(X.view(-1, Q, S))
        return torch.fft.irfft(torch.einsum("nqf,pqf->npf", blocks, spectrum), n=S).reshape(-1, P * S)

    return {"torch dense matrix": lambda: X @ dense.T, "torch FFT": by_fft}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("circulant: the results agree")
