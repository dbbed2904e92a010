"""Writes the small .npy files that the programs here are run with."""

import pathlib

import numpy

HERE = pathlib.Path(__file__).parent

INPUTS = {
    "four": numpy.array([1, 2, 3, 4], dtype=numpy.float32),
    "four_doubles": numpy.array([1, 2, 3, 4], dtype=numpy.float64),
    # The last one is outside of a tensor with 4 elements.
    "cube": numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4),
    "bad_index": numpy.array([0, 3, 9], dtype=numpy.int32),
}

for name, value in INPUTS.items():
    numpy.save(HERE / f"{name}.npy", value)

# A header that a terminal would obey.
(HERE / "escape.npy").write_bytes((HERE / "four.npy").read_bytes().replace(b"<f4", b"\x1b[m", 1))
