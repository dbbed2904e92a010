"""Synthetic pictures, and PNG files of them. Pictures are arrays of 3 by height by width, from 0 to 1."""

import struct
import zlib

import numpy as np

HEIGHT, WIDTH = 192, 256
LARGEST = 40_000  # bytes of a file

# Letters of five by seven, a row in five bits.
FONT = {
    "T": (31, 4, 4, 4, 4, 4, 4), "E": (31, 16, 16, 30, 16, 16, 31), "N": (17, 25, 21, 19, 17, 17, 17),
    "S": (15, 16, 16, 14, 1, 1, 30), "O": (14, 17, 17, 17, 17, 17, 14), "R": (30, 17, 17, 30, 20, 18, 17),
    "W": (17, 17, 17, 21, 21, 21, 10), "I": (14, 4, 4, 4, 4, 4, 14), "G": (14, 17, 16, 23, 17, 17, 14),
    "H": (17, 17, 17, 31, 17, 17, 17),
}  # fmt: skip


def lines(rows):
    """The rows of a PNG file, each with the PNG filter that minimises its bytes."""
    left = np.pad(rows, [(0, 0), (1, 0), (0, 0)])[:, :-1]
    above = np.pad(rows, [(1, 0), (0, 0), (0, 0)])[:-1]
    mean = (left.astype(int) + above) // 2
    kinds = np.stack([rows - guess.astype(np.uint8) for guess in (np.zeros_like(rows), left, above, mean)])
    sizes = np.abs(kinds.view(np.int8).astype(int)).sum(axis=(2, 3))
    for y, kind in enumerate(sizes.argmin(axis=0)):
        yield bytes([kind]) + kinds[kind, y].tobytes()


def png(picture):
    """The bytes of a PNG file, with as many levels of each colour as fit into the largest one."""
    shown = np.broadcast_to(picture, (3, *np.shape(picture)[-2:])).clip(0, 1)
    for levels in (255, 127, 63, 31, 15):
        rows = np.round(np.round(shown * levels) * 255 / levels).astype(np.uint8).transpose(1, 2, 0)
        data = zlib.compress(b"".join(lines(rows)), 9)
        if len(data) < LARGEST - 100:
            break
    header = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def paint(picture, mask, colour):
    """Blends a colour into a picture where a mask is."""
    picture += np.asarray(mask, float) * (np.reshape(colour, (3, 1, 1)) - picture)


def text(picture, words, top, left, scale, colour):
    """Writes capital letters."""
    for n, letter in enumerate(words):
        bits = np.array([[row >> (4 - x) & 1 for x in range(5)] for row in FONT[letter]])
        bits = np.kron(bits, np.ones((scale, scale)))
        start = left + 6 * scale * n
        paint(picture[:, top : top + 7 * scale, start : start + 5 * scale], bits, colour)


def disc(y, x, radius):
    """A disc with a soft edge."""
    i, j = np.mgrid[:HEIGHT, :WIDTH]
    return np.clip(radius + 0.5 - np.hypot(i - y, j - x), 0, 1)


def hills(rng, level, rough):
    """A mask below a random outline, with the depth."""
    x = np.arange(WIDTH)
    waves = [rough / n * np.sin(x * n / 40 + rng.uniform(0, 6)) for n in range(1, 6)]
    depth = np.arange(HEIGHT)[:, None] - (level + np.sum(waves, axis=0))
    return np.clip(depth + 0.5, 0, 1), depth


def scene(seed=0):
    """A landscape with gradients, edges, textures, fine stripes and letters."""
    rng = np.random.default_rng(seed)
    i, j = np.mgrid[:HEIGHT, :WIDTH]
    picture = np.stack([0.25 + 0.5 * i / HEIGHT, 0.45 + 0.35 * i / HEIGHT, 0.85 - 0.1 * i / HEIGHT])
    paint(picture, disc(40, rng.integers(50, 210), 20), (1, 0.9, 0.5))
    far, _ = hills(rng, 90, 14)
    paint(picture, far, (0.36, 0.42, 0.55))
    near, depth = hills(rng, 125, 10)
    grass = 0.5 + 0.5 * np.sin(0.9 * i + 2 * np.sin(0.31 * j)) * np.sin(0.7 * j - 0.2 * i)
    paint(picture, near, (0.2, 0.42, 0.16))
    picture += near * 0.1 * (grass - 0.5) * np.array([1, 1.4, 0.6]).reshape(3, 1, 1)
    picture -= near * np.clip(depth, 0, 60) * 0.0015
    # A house with a roof, a board with letters, a fence, and a chequered blanket.
    left = rng.integers(15, 40)
    paint(picture[:, 95:150, left : left + 60], np.ones((55, 60)), (0.75, 0.6, 0.45))
    roof = (np.abs(j - left - 30) < (i - 70) * 1.5) & (i >= 70) & (i < 95)
    paint(picture, roof, (0.6, 0.2, 0.15))
    for x in (8, 38):
        paint(picture[:, 105:122, left + x : left + x + 14], np.ones((17, 14)), (0.15, 0.18, 0.25))
    paint(picture[:, 122:150, left + 25 : left + 37], np.ones((28, 12)), (0.35, 0.22, 0.12))
    paint(picture[:, 100:124, 92:246], np.ones((24, 154)), (0.93, 0.9, 0.8))
    text(picture, "TENSORWRIGHT", 105, 97, 2, (0.1, 0.1, 0.15))
    paint(picture, ((j // 3) % 2 == 0) & (i >= 132) & (i < 150) & (j >= 150) & (j < 246), (0.9, 0.88, 0.85))
    chequers = (i // 8 + j // 8) % 2
    blanket = (i >= 158) & (i < 184) & (j >= 110) & (j < 190)
    paint(picture, blanket & (chequers == 0), (0.85, 0.15, 0.2))
    paint(picture, blanket & (chequers == 1), (0.95, 0.95, 0.95))
    for _ in range(14):
        paint(picture, disc(rng.integers(155, 190), rng.integers(4, 100), rng.uniform(1.5, 3.5)), rng.random(3))
    return picture.clip(0, 1)


def night(seed=0):
    """The same scene at night, with lights."""
    rng = np.random.default_rng(seed)
    picture = 0.12 * scene(seed) * np.reshape((0.8, 0.9, 1.4), (3, 1, 1))
    for _ in range(40):
        y, x = rng.integers(20, 180), rng.integers(8, 248)
        paint(picture, disc(y, x, 1), rng.uniform(0.4, 1, 3))
    return picture


def stereo(seed=3):
    """Three layers from the left and the right eye: near ones are farther to the left in the right picture."""
    rng = np.random.default_rng(seed)
    backdrop = scene(seed)
    speckle = np.kron(rng.random((3, HEIGHT // 4, WIDTH // 4)), np.ones((4, 4)))
    pictures = []
    for eye in (0, 1):
        picture = np.roll(backdrop, -2 * eye, axis=2)
        for disparity, y, x, radius, colour in ((6, 95, 90, 30, (0.9, 0.5, 0.1)), (10, 130, 190, 42, (0.2, 0.35, 0.8))):
            pattern = np.roll(0.55 * np.reshape(colour, (3, 1, 1)) + 0.45 * speckle, -disparity * eye, axis=2)
            mask = disc(y, x - disparity * eye, radius)
            picture = picture + mask * (pattern - picture)
        pictures.append(picture)
    return pictures


def mosaic(picture):
    """A picture as seen by a sensor with a Bayer filter."""
    raw = picture[1].copy()
    raw[::2, ::2], raw[1::2, 1::2] = picture[0, ::2, ::2], picture[2, 1::2, 1::2]
    return raw
