"""Schedules by hand for Halide: the decisions of the CPU schedules of Halide's published applications (`apps/` of its
repository), written down for the pipelines here.

Where an algorithm here has a stage that the published one has not, the stage is placed as its neighbours are. What is left out:
clones of stages, explicit folding of storage, and prefetching. `f` has the functions of a pipeline by name, `out` is the last.
"""

import halide as hl
from halide_apps import interpolate, lens_blur, local_laplacian

x, y, c, z, d, k, t = (hl.Var(name) for name in "xyczdkt")
xo, xi, yo, yi, yii, tx, ty = (hl.Var(name) for name in ("xo", "xi", "yo", "yi", "yii", "tx", "ty"))
LANES = hl.get_host_target().natural_vector_size(hl.Float(32))


def blur3x3(f, out):
    out.split(y, y, yi, 8).parallel(y).vectorize(x, LANES)
    f["rows"].store_at(out, y).compute_at(out, yi).vectorize(x, LANES)


def unsharp(f, out):
    out.split(y, yo, yi, 32).vectorize(x, LANES).parallel(yo)
    for name in ("rows", "gauss"):
        f[name].compute_at(out, yi).store_at(out, yo).vectorize(x, LANES)


def harris(f, out):
    out.split(y, y, yi, 32).parallel(y).vectorize(x, LANES)
    for name in ("ix", "iy"):
        f[name].store_at(out, y).compute_at(out, yi).vectorize(x, LANES)
    f["ix"].compute_with(f["iy"], x)


def stencil_chain(f, out):
    out.compute_root().tile(x, y, xo, yo, xi, yi, 512, 512).fuse(xo, yo, t).parallel(t).vectorize(xi, 16)
    for name, stage in f.items():
        if name.startswith("stage") and stage.name() != out.name():
            stage.store_at(out, t).compute_at(out, yi).vectorize(x, 16)


def unsharp_mask(f, out):
    f["bell"].compute_root()
    f["tap"].compute_root()
    out.split(y, yo, yi, 32).vectorize(x, LANES).parallel(yo).reorder(x, c, yi, yo)
    for name in ("grey", "by", "ratio"):
        f[name].compute_at(out, yi).store_at(out, yo).vectorize(x, LANES)


def bilateral_grid(f, out):
    grid, bz, bx, by = f["grid"], f["bz"], f["bx"], f["by"]
    inside = grid.rvars(0)
    bz.compute_at(bx, y).bound(c, 0, 2).reorder(c, z, x, y).vectorize(x, 8).unroll(c)
    grid.compute_at(bz, y).bound(c, 0, 2)
    grid.update().reorder(c, *inside, x, y).unroll(c)
    bx.compute_root().bound(c, 0, 2).reorder(c, x, z, y).parallel(y).vectorize(x, 8).unroll(c)
    by.compute_at(out, y).bound(c, 0, 2).reorder(c, x, y, z).reorder_storage(c, z, x, y).vectorize(x, 8).unroll(c)
    out.compute_root().parallel(y, 8).vectorize(x, 8)


def iir_blur(f, out):
    for filtered, turned in (("columns", f["turned"]), ("rows", out)):
        turned.compute_root().tile(x, y, xo, yo, x, y, LANES, 4 * LANES).vectorize(x).parallel(yo).parallel(c)
        f[filtered].compute_at(turned, yo)
        f[filtered].update(0).unscheduled()
        for number in (1, 2):
            f[filtered].update(number).reorder(x, *f[filtered].rvars(number)).vectorize(x)


def interpolated(f, out):
    for level in range(1, interpolate.LEVELS + 1):
        f[f"d{level}"].compute_root().reorder(x, c, y).split(y, yo, yi, 8).parallel(yo).vectorize(x, LANES)
    out.bound(c, 0, 3).split(x, xo, xi, LANES).split(y, yo, yi, 32).reorder(xi, c, xo, yi, yo)
    out.unroll(c).vectorize(xi).parallel(yo)
    for level in range(1, interpolate.LEVELS):
        f[f"u{level}"].store_at(out, yo).compute_at(out, yi).vectorize(x, LANES)


def laplacian(f, out):
    out.reorder(c, x, y).split(y, yo, y, 64).parallel(yo).vectorize(x, 8)
    f["i0"].compute_root().parallel(y, 32).vectorize(x, 8)
    for level in range(1, 5):
        grey, pyramid = f[f"i{level}"], f[f"g{level}"]
        grey.compute_root().parallel(y, 32).vectorize(x, 8)
        f[f"i{level}_rows"].compute_at(grey, y).vectorize(x, 8)
        pyramid.compute_root().reorder_storage(x, k, y).reorder(k, y).parallel(y, 8).vectorize(x, 8)
        f[f"g{level}_rows"].compute_at(pyramid, k).vectorize(x, 8)
        f[f"o{level}"].store_at(out, yo).compute_at(out, y).vectorize(x, 8)
    f["o0"].compute_at(out, y).vectorize(x, 8)
    for level in range(5, local_laplacian.LEVELS):
        f[f"i{level}"].compute_root()
        f[f"g{level}"].compute_root().parallel(k)
        f[f"o{level}"].compute_root()


def nl_means(f, out):
    out.compute_root().reorder(c, x, y).tile(x, y, tx, ty, x, y, 16, 8).parallel(ty).vectorize(x, LANES)
    f["d"].compute_at(out, tx).vectorize(x, LANES)
    f["dy"].compute_at(out, tx).reorder(y, x).vectorize(x, LANES)
    f["dy"].update().reorder(*f["dy"].rvars(0), y, x).vectorize(x, LANES)
    # Sums of colours and of weights are one function of four channels there; both read the same weights here.
    f["dist"].compute_at(out, x).vectorize(x, LANES)
    f["dist"].update().reorder(*f["dist"].rvars(0), x).vectorize(x, LANES)
    f["weight"].compute_at(out, x).vectorize(x, LANES)
    f["sum"].compute_at(out, x).bound(c, 0, 3).reorder(c, x, y).unroll(c).vectorize(x, LANES)
    f["sum"].update().reorder(c, x, y, *f["sum"].rvars(0)).unroll(c).vectorize(x, LANES)
    f["total"].compute_at(out, x).vectorize(x, LANES)
    f["total"].update().reorder(x, y, *f["total"].rvars(0)).vectorize(x, LANES)


def blurred_lens(f, out):
    first, coarse = f["p0"], f["q1"]
    first.compute_root().reorder(d, x, y).vectorize(x, 16).parallel(y, 4)
    for name in ("cost", "mean", "trust"):
        f[name].compute_at(first, x).vectorize(x, 16)
    for name in ("mean", "trust"):
        f[name].update().unscheduled()
    coarse.compute_root().parallel(d).tile(x, y, xi, yi, 8, 2).vectorize(xi).unroll(yi)
    for level in range(1, lens_blur.LEVELS + 1):
        f[f"p{level}"].compute_at(coarse, d).vectorize(x, 8)
    for level in range(2, lens_blur.LEVELS):
        f[f"q{level}"].compute_at(coarse, d).tile(x, y, xi, yi, 8, 2).vectorize(xi).unroll(yi)
    f["disparity"].compute_root().tile(x, y, xi, yi, 8, 2).vectorize(xi).unroll(yi).parallel(y, 8)
    out.compute_root().reorder(c, x, y).bound(c, 0, 3).unroll(c).vectorize(x, 8).parallel(y)
    for name in ("wide", "reach"):
        f[name].compute_at(out, y).vectorize(x, 8)
    for name in ("sx", "sy", "weight"):
        f[name].compute_at(out, x).vectorize(x, 8)
    f["sum"].compute_at(out, x).bound(c, 0, 3).vectorize(x, 8)
    f["sum"].update().reorder(c, x, *f["sum"].rvars(0)).vectorize(x, 8).unroll(c)
    f["total"].compute_at(out, x).vectorize(x, 8)
    f["total"].update().reorder(x, *f["total"].rvars(0)).vectorize(x, 8)


def camera_pipe(f, out):
    out.compute_root().bound(c, 0, 3).reorder(c, x, y).split(y, yo, yi, 128)
    out.tile(x, yi, x, yi, xi, yii, 2 * LANES, 2).vectorize(xi).unroll(yii).unroll(c).parallel(yo)
    for name in ("cool", "r", "gr", "gb", "b", "g_r", "g_b", "dr", "db"):
        f[name].compute_at(out, yi).store_at(out, yo).vectorize(x, 2 * LANES)
    f["curved"].compute_at(out, yi).store_at(out, yo).bound(c, 0, 3).reorder(c, x, y).vectorize(x, 2 * LANES).unroll(c)


SCHEDULES = {
    "blur3x3": blur3x3,
    "unsharp": unsharp,
    "harris": harris,
    "stencil_chain": stencil_chain,
    "unsharp_mask": unsharp_mask,
    "bilateral_grid": bilateral_grid,
    "iir_blur": iir_blur,
    "interpolate": interpolated,
    "local_laplacian": laplacian,
    "nl_means": nl_means,
    "lens_blur": blurred_lens,
    "camera_pipe": camera_pipe,
}
