"""CLBlast, a linear algebra library for OpenCL, tuned for each workload by its own tuners.

`--device N` is the number of the OpenCL device among all of all platforms, `--seconds` how long each tuner may search.
What they find stays in the directory `--state`.
"""

import argparse
import ctypes
import ctypes.util
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import pyopencl as cl
from clblast_tuners import rows
from protocol import Unsupported, Variant, serve

OPTIONS = argparse.Namespace(device=0, seconds=600, state=pathlib.Path("clblast"))
ROW_MAJOR, CROSS_CORRELATION, SINGLE = 101, 151, 32
PLAIN, TRANSPOSED = 111, 112
KEPT = 5
"""The number of a tuner's configurations to measure again: its timings are rough."""
library = ctypes.CDLL(ctypes.util.find_library("clblast"))
size_t, pointer = ctypes.c_size_t, ctypes.c_void_p


def version():
    package = subprocess.run(["dpkg-query", "-W", "-f=${Version}", "libclblast1"], capture_output=True, text=True)
    return "CLBlast " + (package.stdout or "of unknown version")


VERSION = version()


class Device:
    """The device, and a queue on it."""

    def __init__(self, number):
        found = [(p, d) for p, platform in enumerate(cl.get_platforms()) for d in range(len(platform.get_devices()))]
        self.platform, self.number = found[number]
        self.device = cl.get_platforms()[self.platform].get_devices()[self.number]
        self.context = cl.Context([self.device])
        self.queue = cl.CommandQueue(self.context)
        self.handle = pointer(self.queue.int_ptr)

    def upload(self, array):
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(array, np.float32))

    def result(self, shape):
        return self.upload(np.zeros(shape, np.float32))

    def download(self, buffer, shape):
        array = np.empty(shape, np.float32)
        cl.enqueue_copy(self.queue, array, buffer)
        return array

    def override(self, kernel, parameters):
        """Selects a configuration of a kernel."""
        names = (ctypes.c_char_p * len(parameters))(*(name.encode() for name in parameters))
        values = (size_t * len(parameters))(*parameters.values())
        device = pointer(self.device.int_ptr)
        checked(
            library.CLBlastOverrideParameters(device, kernel.encode(), SINGLE, size_t(len(parameters)), names, values)
        )


def checked(status):
    if status != 0:
        raise RuntimeError(f"CLBlast gives the status {status}")


def handle(buffer):
    return pointer(buffer.int_ptr)


def tuned(device, tuner, name, **sizes):
    """The best configurations of a tuner for a workload, its seconds and trials. Cached for the next run."""
    path = OPTIONS.state / f"{name}-{tuner}.json"
    if path.exists():
        known = json.loads(path.read_text())
        return known["best"], known["seconds"], known["configurations"]
    OPTIONS.state.mkdir(parents=True, exist_ok=True)
    numbers = {"platform": device.platform, "device": device.number, "precision": SINGLE, **sizes}
    command = ["stdbuf", "-oL", tuner, *(str(word) for key, value in numbers.items() for word in (f"-{key}", value))]
    start, log = time.time(), OPTIONS.state / f"{name}-{tuner}.log"
    # The tuner prints results as it goes, so it can be stopped at any time.
    with open(log, "w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=OPTIONS.state)
        try:
            process.wait(OPTIONS.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    found = rows(log.read_text(errors="replace"))
    if not found:
        raise RuntimeError(f"{tuner} found nothing; see {log}")
    seconds = round(time.time() - start, 1)
    best = [parameters for _, parameters in found[:KEPT]]
    path.write_text(json.dumps({"best": best, "seconds": seconds, "configurations": len(found)}))
    return best, seconds, len(found)


def variants(device, kernel, tuning, call, output):
    """The library with default and with tuned configurations. They share one library, so each variant sets
    its own."""
    best, seconds, configurations = tuning
    extra = {"tuning_s": seconds, "configurations": configurations}

    def variant(parameters):
        def prepared(action):
            def act():
                if parameters and current.get(kernel) != parameters:
                    device.override(kernel, parameters)
                    current[kernel] = parameters
                return action()

            return act

        def run():
            call()
            device.queue.finish()

        return Variant(prepared(run), prepared(lambda: (run(), output())[1]), extra)

    return {f"tuned {i + 1}": variant(parameters) for i, parameters in enumerate(best)}


current = {}


def product(device, workload, inputs):
    if workload["operator"] != "gemm":
        raise Unsupported
    a, b = inputs("A"), inputs("B")
    m, n = workload["output"]
    ta, tb = workload["transpose_a"], workload["transpose_b"]
    k = a.shape[0] if ta else a.shape[1]
    left, right, result = device.upload(a), device.upload(b), device.result((m, n))
    tuning = tuned(device, "clblast_tuner_xgemm", workload["name"], m=m, n=n, k=k)

    def call():
        checked(library.CLBlastSgemm(
            ROW_MAJOR, TRANSPOSED if ta else PLAIN, TRANSPOSED if tb else PLAIN, size_t(m), size_t(n), size_t(k),
            ctypes.c_float(1.0), handle(left), size_t(0), size_t(a.shape[1]), handle(right), size_t(0),
            size_t(b.shape[1]), ctypes.c_float(0.0), handle(result), size_t(0), size_t(n),
            ctypes.byref(device.handle), None))  # fmt: skip

    return variants(device, "Xgemm", tuning, call, lambda: device.download(result, (m, n)))


def convolution(device, workload, inputs):
    if workload["operator"] != "conv2d" or (workload.get("groups") or 1) != 1:
        raise Unsupported
    image, weight = inputs("X"), inputs("W")
    batch, channels, height, width = image.shape
    filters, _, rows_, columns = weight.shape
    stride, pad, dilation = workload.get("stride") or 1, workload.get("padding") or 0, workload.get("dilation") or 1
    source, taps, result = device.upload(image), device.upload(weight), device.result(workload["output"])
    named = {"channels": channels, "height": height, "width": width, "kernelh": rows_, "kernelw": columns,
             "num_kernels": filters, "batch_num": batch}  # fmt: skip
    # All 193 configurations take ten minutes or more per layer; a random half finds equally good
    # ones.
    tuning = tuned(device, "clblast_tuner_xconvgemm", workload["name"], fraction=2, **named)
    numbers = (channels, height, width, rows_, columns, pad, pad, stride, stride, dilation, dilation, filters, batch)

    def call():
        checked(library.CLBlastSconvgemm(
            CROSS_CORRELATION, *(size_t(number) for number in numbers), handle(source), size_t(0), handle(taps),
            size_t(0), handle(result), size_t(0), ctypes.byref(device.handle), None))  # fmt: skip

    return variants(device, "Xconvgemm", tuning, call, lambda: device.download(result, workload["output"]))


def build(workload, inputs):
    device = Device(OPTIONS.device)
    make = convolution if workload["family"] == "conv2d" else product
    return make(device, workload, inputs)


def overhead():
    device = Device(OPTIONS.device)
    one, other = device.upload(np.ones(1)), device.result(1)

    def call():
        checked(library.CLBlastScopy(size_t(1), handle(one), size_t(0), size_t(1), handle(other), size_t(0), size_t(1),
                                     ctypes.byref(device.handle), None))  # fmt: skip
        device.queue.finish()

    return Variant(call, lambda: device.download(other, 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--state", type=pathlib.Path, default=OPTIONS.state)
    parser.add_argument("--threads", type=int, help="not used: a device has as many as it has")
    parser.parse_args(namespace=OPTIONS)
    serve(sys.modules[__name__])
