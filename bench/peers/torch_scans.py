"""Recurrences and scatters in PyTorch. Indices are converted to `int64` before timing."""

import torch

OPERATORS = ("cumsum", "cummax", "histogram", "scatter_add", "embedding_gradient")


def define(workload, tensor):
    """`{variant: function(data, parameters)}`, the data, and the parameters."""
    operator, size = workload["operator"], workload["output"][0]
    if operator in ("cumsum", "cummax"):
        along = workload["along"]
        call = {
            "cumsum": lambda d, p: torch.cumsum(d[0], along),
            "cummax": lambda d, p: torch.cummax(d[0], along).values,
        }[operator]
        return {operator: call}, [tensor("X")], []
    index = tensor("I").long()
    if operator == "histogram":
        ones = torch.ones_like(index)
        return {
            "bincount": lambda d, p: torch.bincount(d[0], minlength=size),
            "scatter_add": lambda d, p: torch.zeros(size, dtype=torch.long).scatter_add_(0, d[0], d[1]),
            "index_add": lambda d, p: torch.zeros(size, dtype=torch.long).index_add_(0, d[0], d[1]),
        }, [index, ones], []  # fmt: skip
    if operator == "scatter_add":
        return {
            "scatter_add": lambda d, p: torch.scatter_add(d[2], 0, d[0], d[1]),
            "index_add": lambda d, p: torch.index_add(d[2], 0, d[0], d[1]),
        }, [index, tensor("X"), tensor("Y")], []  # fmt: skip
    depth = workload["output"][1]
    return {
        "embedding_dense_backward": lambda d, p: torch.ops.aten.embedding_dense_backward(d[1], d[0], size, -1, False),
        "index_add": lambda d, p: torch.zeros(size, depth).index_add_(0, d[0], d[1]),
    }, [index, tensor("dY")], []  # fmt: skip
