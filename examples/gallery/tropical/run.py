"""A matrix product in the tropical semiring, (max, +): longest paths, Viterbi's algorithm."""

import pathlib

import numpy as np
import tensorwright as tw
import torch

SIZES = {"M": 288, "K": 288, "N": 288}
SMALL = {"M": 5, "K": 7, "N": 9}
TOLERANCE = {"rtol": 0, "atol": 0}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).tropical


def inputs(generator, M, K, N):
    return {"A": torch.randn((M, K), generator=generator), "B": torch.randn((K, N), generator=generator)}


def peers(A, B):
    def by_terms():
        a, b = A.numpy(), B.numpy()
        best = a[:, :1] + b[0]
        term = np.empty_like(best)
        for k in range(1, len(b)):
            np.maximum(best, np.add(a[:, k : k + 1], b[k], out=term), out=best)
        return torch.from_numpy(best)

    return {"torch": lambda: (A[:, :, None] + B).amax(1), "NumPy, term by term": by_terms}


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("tropical: the results agree")
