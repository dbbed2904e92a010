"""Writes the small .npy files that the programs here are run with."""

import pathlib

import numpy

HERE = pathlib.Path(__file__).parent

INPUTS = {
    "four": numpy.array([1, 2, 3, 4], dtype=numpy.float32),
    "four_doubles": numpy.array([1, 2, 3, 4], dtype=numpy.float64),
    # The last one is outside of a tensor with 4 elements.
    "bad_index": numpy.array([0, 3, 9], dtype=numpy.int32),
}

for name, value in INPUTS.items():
    numpy.save(HERE / f"{name}.npy", value)
