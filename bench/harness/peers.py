"""The peers: how to start each, and for which workloads."""

import re
from dataclasses import dataclass

from .places import HOME, PEERS, python
from .runner import Runner

TVM_WORKLOADS = r"^(yolo_c8|mobilenet_dw_2|gemm_1024|conv2d_transpose_4|opevo_bmm1|tbmm_.*|mlp1)$"
"""Only a few workloads, because TVM tunes each for minutes."""

HALIDE_LIMIT = 180.0
"""The time limit of Halide's autoschedulers, in seconds."""


def zero_padded(workload):
    """Whether a convolution pads its image: the Adams2019 search does not terminate on these."""
    return workload["operator"] == "dwsep" or bool(workload.get("padding"))


@dataclass(frozen=True)
class Peer:
    """A peer."""

    name: str
    script: str | None = None
    environment: str | None = None
    options: tuple = ()
    build_limit: float = 90.0
    """The build timeout in seconds."""
    only: str = ""
    """A pattern of its workloads."""
    device: bool = False
    """Whether it runs on devices instead of processors."""

    def installed(self):
        if self.environment is None:
            return (HOME / "rust" / "release" / "rust-peers").exists()
        return python(self.environment).exists()

    def wants(self, workload):
        """Whether it runs a workload."""
        if self.name == "halide-adams2019" and zero_padded(workload):
            return False
        return re.search(self.only, workload["name"]) is not None

    def runner(self, threads, settings):
        """A process of this peer."""
        log = settings.out / "logs" / f"{self.name}-{threads}.log"
        if self.environment is None:
            command = [HOME / "rust" / "release" / "rust-peers", self.name, threads]
            return Runner(self.name, command, threads, log, {"RAYON_NUM_THREADS": str(threads)})
        command = [python(self.environment), PEERS / self.script, *self.options]
        if self.environment != "numpy" and self.environment != "jax":
            command += ["--threads", threads]
        if self.name == "tvm":
            command += ["--trials", settings.peer_trials, "--state", settings.out / "tvm"]
        if self.name == "onednn":
            command += ["--library", HOME / "onednn" / "libonednn_peer.so"]
        if self.device:
            command += ["--device", settings.target.removeprefix("opencl:")]
        if self.name == "clblast":
            command += ["--state", settings.out / "clblast", "--seconds", settings.peer_seconds]
        return Runner(self.name, command, threads, log, self.start_variables(threads, settings))

    def start_variables(self, threads, settings):
        if self.environment == "torch":
            libraries = [HOME / "torch" / "stubs", *HOME.glob("torch/lib/python*/site-packages/nvidia/*/lib")]
            cuda = ":".join(map(str, libraries))
            return {"LD_LIBRARY_PATH": cuda, "TORCHINDUCTOR_CACHE_DIR": str(settings.out / "inductor")}
        if self.environment == "jax":
            # The affinity mask determines the number of threads.
            flags = {} if threads > 1 else {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
            return {"JAX_PLATFORMS": "cpu", **flags}
        return {}


PEER_LIST = (
    Peer("numpy", "peer_numpy.py", "numpy"),
    Peer("torch", "peer_torch.py", "torch"),
    Peer("torch-compile", "peer_torch.py", "torch", ("--mode", "compile"), build_limit=300.0),
    Peer("onednn", "peer_onednn.py", "onednn"),
    Peer("jax", "peer_jax.py", "jax"),
    Peer("halide-adams2019", "peer_halide.py", "halide", ("--scheduler", "adams2019"), build_limit=HALIDE_LIMIT),
    Peer("halide-mullapudi2016", "peer_halide.py", "halide", ("--scheduler", "mullapudi2016"), HALIDE_LIMIT),
    Peer("halide-hand", "peer_halide.py", "halide", ("--scheduler", "hand"), HALIDE_LIMIT),
    Peer("tvm", "peer_tvm.py", "tvm", build_limit=1800.0, only=TVM_WORKLOADS),
    Peer("gemm"),
    Peer("faer"),
    Peer("clblast", "peer_clblast.py", "clblast", build_limit=3600.0, device=True),
    Peer("halide-anderson2021", "peer_halide.py", "halide", ("--scheduler", "anderson2021"), HALIDE_LIMIT, device=True),
)


def chosen(names, device=False):
    """The installed peers with these names, and the names of missing ones."""
    wanted = [peer for peer in PEER_LIST if peer.device == device and ("all" in names or peer.name in names)]
    return [peer for peer in wanted if peer.installed()], [peer.name for peer in wanted if not peer.installed()]


def ours(threads, column, run, settings):
    """The project's runner, for the kernels of a column."""
    kernel = run.kernels[column]
    name = "tensorwright" if column == next(iter(run.kernels)) else f"tensorwright {column}"
    command = [run.ours, "--target", run.target or "native", "--threads", threads, "--db", kernel.db(settings)]
    command += ["--precision", kernel.precision]
    if not kernel.tuned:
        command.append("--untuned")
    return Runner(name, command, threads, settings.out / "logs" / f"tensorwright-{column}-{threads}.log")
