"""The workload suites and their goals."""

import json
import re
from dataclasses import dataclass

from .places import WORKLOADS


@dataclass(frozen=True)
class Suite:
    """Workload files that are reported together."""

    name: str
    title: str
    files: tuple
    mean: float | None = None
    """The minimum geometric mean of the ratio of the best peer's time to ours."""
    floor: float | None = None
    """The minimum ratio of each workload."""
    seconds: float = 30.0
    """The tuning time per workload."""
    only: str = ""
    """A pattern of its workloads in the files."""
    device: bool = False
    """Whether it is for devices (`--target`) instead of processors."""


SUITES = (
    Suite("yolo", "YOLO-v1's convolutions (FlexTensor, table 4)", ("flextensor_yolo",), 1.5, 0.95),
    Suite("ops", "FlexTensor's operators", ("flextensor_ops",), 1.7, 0.9, 10.0),
    Suite("gemm", "Products of G-BFS, and OpEvo's operators", ("gbfs", "opevo"), 1.1, 0.93),
    Suite("tc", "Operators of Tensor Comprehensions", ("tc",), 1.5, 0.93),
    Suite("rows", "Norms and softmax along rows", ("rows",), 1.2, 0.95),
    Suite("attention", "Attention", ("attention",), 1.0),
    Suite("gradients", "Gradients of attention", ("attention_gradients",), 1.0),
    Suite("scans", "Recurrences and scatters", ("scans",), 1.0),
    Suite("imaging", "Image pipelines around Halide", ("imaging",)),
    Suite("applications", "Imaging applications of several stages", ("applications",), seconds=60.0),
    Suite("device-products", "Products and convolutions on a device", ("gbfs", "flextensor_yolo"), 1.2, 1.2, 120.0,
          r"^(gemm_1024|yolo_c(2|8|13))$", device=True),
    Suite("device-stages", "Stages on a device", ("imaging", "rows", "flextensor_ops"), 1.0, 1.0, 60.0,
          r"^(blur3x3|harris|softmax_512_4096|mobilenet_dw_2)$", device=True),
)  # fmt: skip


def chosen(names, only, full_size, device=False):
    """`[(suite, workload)]` of the named suites with matching names, for devices or for processors."""
    found = []
    for suite in SUITES:
        if suite.device != device or ("all" not in names and suite.name not in names):
            continue
        for file in suite.files:
            for workload in json.loads((WORKLOADS / f"{file}.json").read_text()):
                wanted = all(re.search(pattern, workload["name"]) for pattern in (only, suite.only))
                if wanted and (full_size or not workload["full_size"]):
                    found.append((suite, workload))
    return found
