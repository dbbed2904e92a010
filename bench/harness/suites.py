"""The workload suites, and what is asked of them."""

import json
import re
from dataclasses import dataclass

from .places import WORKLOADS


@dataclass(frozen=True)
class Suite:
    """Files of workloads that are reported together."""

    name: str
    title: str
    files: tuple
    mean: float | None = None
    """The least geometric mean of the ratio of the best peer's time to ours."""
    floor: float | None = None
    """The least ratio of any one workload."""
    seconds: float = 30.0
    """How long each workload is tuned."""


SUITES = (
    Suite("yolo", "YOLO-v1's convolutions (FlexTensor, table 4)", ("flextensor_yolo",), 1.5, 0.95),
    Suite("ops", "FlexTensor's operators", ("flextensor_ops",), 1.7, 0.9, 10.0),
    Suite("gemm", "Products of G-BFS, and OpEvo's operators", ("gbfs", "opevo"), 1.1, 0.93),
    Suite("tc", "Operators of Tensor Comprehensions", ("tc",), 1.5, 0.93),
    Suite("rows", "Norms and softmax along rows", ("rows",), 1.2, 0.95),
    Suite("attention", "Attention", ("attention",), 1.0),
    Suite("scans", "Recurrences and scatters", ("scans",), 1.0),
    Suite("imaging", "Image pipelines around Halide", ("imaging",)),
    Suite("applications", "Imaging applications of several stages", ("applications",), seconds=60.0),
)


def chosen(names, only, full_size):
    """`[(suite, workload)]` of the named suites whose names match."""
    pattern = re.compile(only)
    found = []
    for suite in SUITES:
        if "all" not in names and suite.name not in names:
            continue
        for file in suite.files:
            for workload in json.loads((WORKLOADS / f"{file}.json").read_text()):
                if pattern.search(workload["name"]) and (full_size or not workload["full_size"]):
                    found.append((suite, workload))
    return found
