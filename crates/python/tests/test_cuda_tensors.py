"""CUDA tensors of other libraries, on the stand-in for CUDA's driver."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parents[2] / "device/src/tests/stand_in/libcuda.cpp"
GEMM = "def gemm(float(M,K) A, float(K,N) B, float s) -> (C) { C(m,n) +=! s * A(m,k) * B(k,n) }"
SCHEDULED = ["--target", "cuda:0", "--size", "M=32,N=32,K=32"]


def stand_in(folder, text):
    """A driver with the kernels of a text."""
    folder.mkdir()
    path = folder / "libcuda.so.1"
    (folder / "text.cu").write_text(text)
    kernels = re.findall(r"__global__[^(]*(?:\(\d+\)\s*)?\s(\w+)\s*\(([^)]*)\)", text)
    shared = "0"  # what the driver says that the compiled kernels use: nothing is checked beyond the limit
    entries = "".join(f'{{"{name}", (void *){name}, {len(args.split(","))}, {shared}}}, ' for name, args in kernels)
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", path,
         f'-DTEXT="{folder / "text.cu"}"', f"-DENTRIES={entries}", STAND_IN],
        check=True,
    )  # fmt: skip
    return path


def test_tensors_on_a_device_are_used_where_they_are(tmp_path):
    if "TENSORWRIGHT_CUDA" not in os.environ:
        assert "TENSORWRIGHT_NEEDS_DEVICES" not in os.environ, "TENSORWRIGHT_CUDA has to name NVIDIA's packages"
        pytest.skip("NVIDIA's compiler is not here")
    program = tmp_path / "gemm.tc"
    program.write_text(GEMM)
    # The text of the kernels for the device of the stand-in, which does not have them yet.
    bare = stand_in(tmp_path / "bare", "extern \"C\" __global__ void none(void *a, void *b, void *c) {}\n")
    environment = os.environ | {"LD_LIBRARY_PATH": f"{bare.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    command = [sys.executable, "-m", "tensorwright", "compile", program, "--emit", "cuda", *SCHEDULED]
    text = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    driver = stand_in(tmp_path / "whole", text)
    script = Path(__file__).parent / "stand_in_tensors.py"
    done = subprocess.run([sys.executable, script, driver, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "all right" in done.stdout
