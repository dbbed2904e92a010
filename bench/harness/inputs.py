"""Inputs of workloads: random and reproducible."""

import zlib

import numpy as np

SHARP = 0.1
"""Unsharp masking divides by pixels, so they must not be zero."""


def values(workload, name, shape):
    """One input."""
    random = np.random.default_rng([zlib.crc32(workload["name"].encode()), zlib.crc32(name.encode())])
    if name in workload.get("data", ()):
        return given(workload["data"][name], shape, random)
    if name in workload.get("indices", ()):
        return random.integers(0, workload["index_range"], shape, np.int32)
    if workload["family"] == "imaging" and len(workload["inputs"]) == 1:
        pixels = random.random(shape, np.float32)
        return pixels + np.float32(SHARP) if workload["operator"] == "unsharp" else pixels
    return random.standard_normal(shape, np.float32)


def given(data, shape, random):
    """An input described by the workload: a number, or `[type, low, high]` for integers below `high`,
    optionally with a unit for multiples of it."""
    if not isinstance(data, list):
        return np.full(shape, data, np.int32 if isinstance(data, int) else np.float32)
    kind, low, high, *unit = data
    whole = random.integers(low, high, shape)
    return (whole * unit[0] if unit else whole).astype(kind)


def write(workload, directory):
    """Writes all inputs as `NAME.npy`."""
    for name, shape in workload["inputs"].items():
        np.save(directory / f"{name}.npy", values(workload, name, shape))


def tolerance(workload):
    """The allowed difference of two correct results, relative to the largest value.

    Rounding errors of a sum grow like the root of its length if they are independent; fast algorithms such as
    Winograd's lose a digit more.
    """
    terms = max(1.0, workload.get("terms", workload["flops"] / 2 / np.prod(workload["output"])))
    return 1e-5 + 4e-6 * float(np.sqrt(terms))


def difference(found, expected):
    """The largest difference relative to the largest value; infinite if shapes or values are not
    comparable."""
    found, expected = found.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    largest = np.abs(expected).max()
    return float(np.abs(found - expected).max() / largest) if largest > 0 else float(np.abs(found).max())
