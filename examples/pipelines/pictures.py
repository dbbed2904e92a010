#!/usr/bin/env python3
"""Runs the applications on synthetic pictures, and writes inputs and outputs as PNG files:

    python examples/pipelines/pictures.py                    # all, to guide/src/images/pipelines
    python examples/pipelines/pictures.py nl_means -o DIR    # one

Needs NumPy and the command `tensorwright` (the environment variable TENSORWRIGHT, or the first in PATH).
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import scenes
from numpy.lib.stride_tricks import sliding_window_view
from scenes import mosaic, night, scene, stereo

HERE = pathlib.Path(__file__).resolve().parent
IMAGES = HERE.parent.parent / "guide/src/images/pipelines"
COMMAND = os.environ.get("TENSORWRIGHT", "tensorwright")


def run(name, sizes=None, folder="pipelines", **inputs):
    """The output of an application. Inputs that are arrays are float, unless they are integers."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [COMMAND, "run", str(HERE.parent / folder / f"{name}.tc"), "--def", name]
        command += ["--output", f"out={scratch}/out.npy"]
        for key, value in (sizes or {}).items():
            command += ["--size", f"{key}={value}"]
        for key, value in inputs.items():
            if isinstance(value, np.ndarray):
                path = f"{scratch}/{key}.npy"
                np.save(path, value.astype("float32") if value.dtype == float else value)
                value = path
            command += ["--input", f"{key}={value}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return np.load(f"{scratch}/out.npy")


def grey(picture):
    return np.tensordot([0.299, 0.587, 0.114], picture, 1)


def noisy(picture, sigma):
    return (picture + np.random.default_rng(1).normal(0, sigma, picture.shape)).clip(0, 1)


def bilateral_grid():
    before = noisy(grey(scene()), 0.04)
    return before, run("bilateral_grid", {"s": 8, "bins": 8}, **{"in": before})


def local_laplacian():
    return scene(), run("local_laplacian", {"K": 8}, alpha=1, beta=1, **{"in": scene()})


def nl_means():
    before = noisy(scene()[:, 36:, :172], 0.06)  # a part: noise makes large files
    return before, run("nl_means", {"S": 13, "P": 5}, sigma=0.06, **{"in": before})


def lens_blur():
    left, right = stereo()
    turns = 2.39996 * np.arange(64)
    lens = np.sqrt((np.arange(64) + 0.5) / 64) * np.stack([np.sin(turns), np.cos(turns)])
    return left, run("lens_blur", {"D": 14, "R": 8}, focus=6, aperture=1.5, left=left, right=right, lens=lens.T.copy())


def camera_pipe():
    # The sensor sees light, not the curve of a screen; less of red and blue; noise, and a few hot pixels.
    rng = np.random.default_rng(2)
    sensor = scene() ** 2.2 * np.reshape((0.6, 1, 0.7), (3, 1, 1))
    raw = 30 + 960 * mosaic(sensor) + rng.normal(0, 2, (scenes.HEIGHT, scenes.WIDTH))
    raw[rng.random(raw.shape) < 0.002] = 1023
    matrix = np.diag(np.round(256 * 1023 / 960 / np.array([0.6, 1, 0.7]))).astype(np.int32)
    matrix = np.concatenate([matrix, -30 * matrix.sum(axis=1, keepdims=True, dtype=np.int32)], axis=1)
    curve = np.round(255 * (np.arange(1024) / 1023) ** (1 / 2.2)).astype(np.uint8)
    raw = raw.clip(0, 1023).astype(np.uint16)
    return raw / 1023, run("camera_pipe", raw=raw, matrix=matrix, curve=curve, strength=16) / 255


def stencil_chain():
    before = grey(scene())
    return before, run("stencil_chain", folder="kernels", **{"in": before})


def harris():
    before = grey(scene())
    corners = run("harris", folder="kernels", **{"in": before}).clip(0)
    corners = np.sqrt(corners / np.quantile(corners, 0.99)).clip(0, 1)
    dim = 0.5 * before * (1 - corners)
    return before, np.stack([dim + corners, dim, dim])


def equalize_colour():
    before = np.round(255 * (0.35 + 0.25 * scene() ** 1.5)).astype(np.uint8)
    return before / 255, run("equalize_colour", **{"in": before}) / 255


def disc_filter():
    return night(), run("disc_filter", {"r": 6}, **{"in": night()})


def unsharp_mask():
    soft = run("iir_blur", a=0.6, **{"in": scene()}).astype(float)
    return soft, run("unsharp_mask", sigma=1.5, **{"in": soft})


def interpolate():
    rng = np.random.default_rng(4)
    known = rng.random((1, scenes.HEIGHT, scenes.WIDTH)) < 0.15
    known &= scenes.disc(60, 190, 16) < 0.5
    before = np.concatenate([scene(), known.astype(float)])
    return before[:3] * before[3], run("interpolate", **{"in": before})


def iir_blur():
    return scene(), run("iir_blur", a=0.15, **{"in": scene()})


def bgu():
    # The filter that is learned: local Laplacian filters and a warmer tone, on a picture of a quarter of the size.
    hi = scene()
    lo = hi.reshape(3, scenes.HEIGHT // 4, 4, scenes.WIDTH // 4, 4).mean(axis=(2, 4))
    done = run("local_laplacian", {"K": 8}, alpha=1, beta=0.7, **{"in": lo}).astype(float)
    done = (done ** np.reshape((0.7, 0.9, 1.2), (3, 1, 1))).clip(0, 1)
    shown = np.kron(done, np.ones((1, 4, 4)))
    return shown, run("bgu", {"f": 4, "s": 8, "bins": 8}, small=0.01, lo=lo, done=done, hi=hi)


def gates():
    """Gate features for changes along x and y, and their weights: horizontal, vertical and round experts."""
    feature = np.zeros((2, 5, 5))
    feature[0, 2], feature[1, :, 2] = (-1, 0, 2, 0, -1), (-1, 0, 2, 0, -1)
    return feature, np.array([[-20.0, 0], [0, -20], [-12, -12]])


def train():
    """The experts, fitted to pictures of other seeds by least squares: with the gates given, the result is linear in them."""
    feature, gate = gates()
    products = np.zeros((4, 75, 75)), np.zeros((4, 75, 3))
    for seed in range(1, 5):
        picture = scene(seed)
        windows = sliding_window_view(np.pad(mosaic(picture), 2, mode="reflect"), (5, 5))
        scores = np.einsum("kf,fyx->yxk", gate, np.abs(np.einsum("fij,yxij->fyx", feature, windows)))
        share = np.exp(scores - scores.max(axis=2, keepdims=True))
        share /= share.sum(axis=2, keepdims=True)
        known = np.einsum("yxk,yxij->yxkij", share, windows).reshape(*share.shape[:2], 75)
        for place in range(4):
            at = (slice(place // 2, None, 2), slice(place % 2, None, 2))
            a, b = known[at].reshape(-1, 75), picture[:, *at].reshape(3, -1).T
            products[0][place] += a.T @ a
            products[1][place] += a.T @ b
    found = [np.linalg.solve(a + 1e-2 * np.eye(75), b) for a, b in zip(*products, strict=True)]
    return np.stack(found).transpose(0, 2, 1).reshape(4, 3, 3, 5, 5)


def learned_demosaic():
    raw = mosaic(scene())
    feature, gate = gates()
    return raw, run("learned_demosaic", raw=raw, feature=feature, gate=gate, expert=train())


ALL = (bilateral_grid, local_laplacian, nl_means, lens_blur, camera_pipe, stencil_chain, harris, equalize_colour,
       disc_filter, unsharp_mask, interpolate, iir_blur, bgu, learned_demosaic)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="applications; all if none is given")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=IMAGES, help="where the pictures go")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for application in ALL:
        name = application.__name__
        if not options.name or name in options.name:
            for side, picture in zip(("before", "after"), application(), strict=True):
                data = scenes.png(picture)
                (options.output / f"{name}-{side}.png").write_bytes(data)
                print(f"{name}-{side}.png  {len(data)} bytes")


if __name__ == "__main__":
    main()
