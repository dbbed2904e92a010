"""Embedding bag: the mean of the table rows of a text's words."""

import pathlib

import tensorwright as tw
import torch
import torch.nn.functional as F

SIZES = {"V": 50000, "D": 64, "B": 512, "L": 32}
SMALL = {"V": 20, "D": 6, "B": 3, "L": 4}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

op = tw.load(pathlib.Path(__file__).with_name("kernel.tc")).embedding_bag


def inputs(generator, V, D, B, L):
    words = torch.randint(V, (B, L), generator=generator, dtype=torch.int32)
    return {"table": torch.randn((V, D), generator=generator), "words": words}


def peers(table, words):
    return {
        "torch": lambda: table[words].mean(1),
        "torch embedding_bag": lambda: F.embedding_bag(words, table, mode="mean"),
    }


if __name__ == "__main__":
    given = inputs(torch.Generator().manual_seed(0), **SMALL)
    for name, peer in peers(**given).items():
        torch.testing.assert_close(op(**given), peer(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")
    print("embedding_bag: the results agree")
