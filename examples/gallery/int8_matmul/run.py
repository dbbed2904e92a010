"""A product of matrices of bytes, summed in int32, and brought back to bytes."""

import pathlib

import tensorwright as tw
import torch

SIZES = {"M": 128, "K": 512, "N": 512}
SMALL = {"M": 5, "K": 24, "N": 7}
TOLERANCE = {"rtol": 0, "atol": 0}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).int8_matmul


def inputs(generator, M, K, N):
    def bytes(*shape):
        return torch.randint(-128, 128, shape, generator=generator, dtype=torch.int8)

    return {"A": bytes(M, K), "B": bytes(N, K), "scale": 2.0**-13}


def peers(A, B, scale):
    floats = B.float().T

    def requantised(sums):
        return (sums * scale).round().clamp(-128, 127).to(torch.int8)

    return {
        # Sums stay below 2^24, so that float is exact.
        "torch in float": lambda: requantised(A.float() @ floats),
        "torch _int_mm": lambda: requantised(torch._int_mm(A, B.T).float()),
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("int8_matmul: the results agree")
