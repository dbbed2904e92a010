"""The applications of examples/pipelines in Halide, written from their definitions there.

A module has `pipeline(inputs, size)`: `inputs(name)` is an image or a scalar of the definition, with the dimensions in
the opposite order (columns first), `size` has the sizes by name, and what it gives is the last function.
"""

from . import (
    bgu,
    bilateral_grid,
    camera_pipe,
    disc_filter,
    equalize_colour,
    iir_blur,
    interpolate,
    learned_demosaic,
    lens_blur,
    local_laplacian,
    nl_means,
    unsharp_mask,
)

APPLICATIONS = {
    "bgu": bgu,
    "bilateral_grid": bilateral_grid,
    "camera_pipe": camera_pipe,
    "disc_filter": disc_filter,
    "equalize_colour": equalize_colour,
    "iir_blur": iir_blur,
    "interpolate": interpolate,
    "learned_demosaic": learned_demosaic,
    "lens_blur": lens_blur,
    "local_laplacian": local_laplacian,
    "nl_means": nl_means,
    "unsharp_mask": unsharp_mask,
}
