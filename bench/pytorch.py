"""Tensorwright against PyTorch, from Python: call overhead, training, dynamic shapes, seven operators, and
saved values.

    python bench/pytorch.py                      # all tables
    python bench/pytorch.py overheads training   # some
    python bench/pytorch.py operators --tune 30  # 30 seconds of tuning for each operator

Needs torch and the package `tensorwright`. Both use the same number of threads (`--threads`). Times are the best of rounds that take turns:
on a shared machine others only add to them.
"""

import argparse
import itertools
import math
import os
import random
import statistics
import tempfile
import time

os.environ.setdefault("TENSORWRIGHT_DB", os.path.join(tempfile.mkdtemp(), "records.sqlite3"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import tensorwright as tw  # noqa: E402


def compare(*calls, seconds=0.3, rounds=7):
    """The seconds of each call: the best of interleaved rounds."""
    counts = []
    for call in calls:
        call()
        begun = time.perf_counter()
        call()
        once = max(time.perf_counter() - begun, 1e-7)
        counts.append(max(1, int(seconds / rounds / len(calls) / once)))
    best = [math.inf] * len(calls)
    for _ in range(rounds):
        for number, (call, count) in enumerate(zip(calls, counts, strict=True)):
            begun = time.perf_counter()
            for _ in range(count):
                call()
            best[number] = min(best[number], (time.perf_counter() - begun) / count)
    return best


def table(title, header, rows):
    print(f"\n## {title}\n")
    print("| " + " | ".join(header) + " |")
    print("| --- |" + " ---: |" * (len(header) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def us(seconds):
    return f"{seconds * 1e6:.1f}"


NORM = """
def norm(float(N,D) x, float(D) g, float(D) b) -> (y) {
  s(n) +=! x(n,d)
  m(n) = s(n) / D
  q(n) +=! (x(n,d) - m(n)) * (x(n,d) - m(n))
  r(n) = 1 / sqrt(q(n) / D + 1e-5)
  y(n,d) = (x(n,d) - m(n)) * r(n) * g(d) + b(d)
}
def bias_gelu_residual_norm(float(N,D) x, float(D) bias, float(N,D) r, float(D) g, float(D) b) -> (y) {
  h(n,d) = gelu(x(n,d) + bias(d)) + r(n,d)
  s(n) +=! h(n,d)
  m(n) = s(n) / D
  q(n) +=! (h(n,d) - m(n)) * (h(n,d) - m(n))
  z(n) = 1 / sqrt(q(n) / D + 1e-5)
  y(n,d) = (h(n,d) - m(n)) * z(n) * g(d) + b(d)
}
def dense(float(N,I) x, float(O,I) w, float(O) b) -> (y) {
  y(n,o) = b(o)
  y(n,o) += x(n,i) * w(o,i)
  y(n,o) = gelu(y(n,o))
}
"""


DIMS = {"norm": ["ND", "D", "D"], "bias_gelu_residual_norm": ["ND", "D", "ND", "D", "D"]}


def overheads(_):
    """Kernels of eight numbers, dominated by call overhead."""
    add = tw.define("def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }").add
    registered = tw.torch.register(add, backward=True)
    a, b = torch.ones(8), torch.ones(8)
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)
    seed = torch.ones(8)

    def backward(op):
        torch.autograd.backward(op(x, y), seed, inputs=(x,))

    rows = []
    for name, ours, theirs in [
        ("a call", lambda: add(a, b), lambda: torch.add(a, b)),
        ("a call of a registered operator", lambda: registered(a, b), lambda: torch.add(a, b)),
        ("the same, recording a gradient", lambda: registered(x, y), lambda: torch.add(x, y)),
        ("forward and backward", lambda: backward(registered), lambda: backward(torch.add)),
    ]:
        mine, other = compare(ours, theirs)
        rows.append((name, us(mine), us(other), f"{mine / other:.2f}"))
    table("Overheads (us)", ("", "tensorwright", "torch", "ratio"), rows)


def training(choices):
    """A step of a small network, and forward and backward of fused norms."""
    module = tw.define(NORM)
    rows = []
    norms = {
        "norm": lambda x, g, b: F.layer_norm(x, g.shape, g, b),
        "bias_gelu_residual_norm": lambda x, bias, r, g, b: F.layer_norm(F.gelu(x + bias) + r, g.shape, g, b),
    }
    for (name, theirs), count in itertools.product(norms.items(), (256, 4096)):
        op, sizes = module[name], {"N": count, "D": 768}
        args = [torch.randn([sizes[dim] for dim in dims], requires_grad=True) for dims in DIMS[name]]
        seed = torch.randn(count, 768)
        if choices.tune:
            op.tune(*(arg.detach() for arg in args), time=choices.tune, backward=True, progress=False)
        ours = tw.torch.register(op, backward=True)

        def step(op, args=args, seed=seed):
            return torch.autograd.grad(op(*args), args, seed)

        for mine, other in zip(step(ours), step(theirs), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-2)  # sums over the rows
        mine, other = compare(lambda: step(ours), lambda: step(theirs), seconds=3.0, rounds=100)
        rows.append((f"forward and backward of {name}, {count} x 768", us(mine), us(other), f"{other / mine:.2f}"))
    args, seed = [torch.randn(shape, requires_grad=True) for shape in [(256, 768), (768,), (768,)]], torch.randn(256, 768)
    ours = tw.torch.register(module.norm, backward=True)
    mine, other = compare(*(lambda op=op: torch.autograd.grad(op(*args), args, seed) for op in (ours, TorchsNorm.apply)),
                          seconds=3.0, rounds=100)  # fmt: skip
    rows.append(("norm, 256 x 768, beside torch's kernels in a Function of Python", us(mine), us(other), f"{other / mine:.2f}"))
    mine, other = compare(*norm_kernels(module), seconds=3.0, rounds=100)
    rows.append(("the kernels of norm alone, 256 x 768, without autograd", us(mine), us(other), f"{other / mine:.2f}"))

    sizes = (64, 128, 128, 10)
    x, target = torch.randn(32, sizes[0]), torch.randint(0, sizes[-1], (32,))
    layer = tw.torch.register(module.dense, backward=True)

    def network(op):
        torch.manual_seed(0)
        params = []
        for inner, outer in zip(sizes, sizes[1:]):
            params += [torch.randn(outer, inner) / math.sqrt(inner), torch.zeros(outer)]
        params = [param.requires_grad_() for param in params]
        optimizer = torch.optim.SGD(params, lr=0.01)

        def step():
            optimizer.zero_grad()
            y = x
            for number in range(0, len(params), 2):
                y = op(y, params[number], params[number + 1])
            loss = F.cross_entropy(y, target)
            loss.backward()
            optimizer.step()
            return loss

        return step

    if choices.tune:
        for inner, outer in zip(sizes, sizes[1:]):
            module.dense.tune(N=32, I=inner, O=outer, time=choices.tune / 3, backward=True, progress=False)
    ours, theirs = network(layer), network(lambda x, w, b: F.gelu(F.linear(x, w, b)))
    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-4)
    mine, other = compare(ours, theirs, seconds=3.0, rounds=100)
    rows.append(("a step of a network of 3 layers of 128, batch 32", us(mine), us(other), f"{other / mine:.2f}"))
    table("Training (us)", ("", "tensorwright", "torch eager", "times as fast"), rows)


class TorchsNorm(torch.autograd.Function):
    """PyTorch's norm kernels in a user-defined autograd function, which calls Python."""

    @staticmethod
    def forward(ctx, x, g, b):
        y, mean, rstd = torch.native_layer_norm(x, g.shape, g, b, 1e-5)
        ctx.save_for_backward(x, g, b, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, seed):
        x, g, b, mean, rstd = ctx.saved_tensors
        return torch.ops.aten.native_layer_norm_backward(seed, x, g.shape, mean, rstd, g, b, [True] * 3)


def norm_kernels(module):
    """Norm kernels, forward and backward, called by autograd: ours and torch's."""
    x, g, b, seed = (torch.randn(shape) for shape in [(256, 768), (768,), (768,), (256, 768)])
    forward, gradient, saved = module.training("norm", ["x", "g", "b"])
    taken = [name for name, *_ in gradient.parameters()]

    def ours():
        made = forward(x, g, b)
        known = {"x": x, "g": g, "b": b, "d_y": seed, **{name: made[place] for name, place in saved.items()}}
        return gradient(*(known[name] for name in taken))

    def theirs():
        _, mean, rstd = torch.native_layer_norm(x, g.shape, g, b, 1e-5)
        return torch.ops.aten.native_layer_norm_backward(seed, x, g.shape, mean, rstd, g, b, [True] * 3)

    for mine, other in zip(ours(), theirs(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-3)
    return ours, theirs


def shapes(choices):
    """Random batch sizes: few kernels, against one kernel per size."""
    rows = []
    draw = random.Random(0)
    sizes = [draw.randint(1, 2048) for _ in range(choices.sizes)]
    for name, text, rest in [
        ("bias and SiLU, 256", "def f(float(N,D) x, float(D) b) -> (y) { y(n,d) = silu(x(n,d) + b(d)) }", (256,)),
        ("RMS norm, 256", """def f(float(N,D) x, float(D) g) -> (y) {
            s(n) +=! x(n,d) * x(n,d)  y(n,d) = x(n,d) * g(d) / sqrt(s(n) / D + 1e-5) }""", (256,)),
        ("dense layer, 256 x 256",
         "def f(float(N,I) x, float(O,I) w) -> (y) { y(n,o) +=! x(n,i) * w(o,i)  y(n,o) = max(y(n,o), 0) }", (256, 256)),
    ]:  # fmt: skip
        few, each = tw.define(text, dynamic=["N"]).f, tw.define(text, dynamic=False, kernels=8).f
        x, w = torch.randn(2048, 256), torch.randn(rest)
        begun = time.perf_counter()
        for n in sizes:
            few(x[:n], w)
        first = time.perf_counter() - begun
        ratios = []
        for n in sizes[:: max(1, len(sizes) // choices.compared)]:
            mine, exact = compare(lambda: few(x[:n], w), lambda: each(x[:n], w), seconds=0.05)
            ratios.append(mine / exact)
        rows.append((name, str(len(set(sizes))), str(few.kernels), f"{first:.2f}", f"{statistics.mean(ratios):.2f}",
                     f"{max(ratios):.2f}"))  # fmt: skip
    header = ("", "sizes", "kernels", "s for all first calls", "mean slowdown", "worst slowdown")
    table("Random batch sizes, beside a kernel for each", header, rows)


def alibi(heads):
    return 2.0 ** (-8.0 / heads * (torch.arange(heads) + 1))


def alibi_attention(q, k, v, slope):
    at = torch.arange(q.shape[1])
    bias = slope[:, None, None] * (at[None, :] - at[:, None])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(at[None, :] > at[:, None], -math.inf))


OPERATORS = {
    "bias, GELU, residual, norm": (
        NORM, "bias_gelu_residual_norm", lambda: [torch.randn(s) for s in [(256, 768), (768,), (256, 768), (768,), (768,)]],
        lambda x, bias, r, g, b: F.layer_norm(F.gelu(x + bias) + r, g.shape, g, b),
    ),
    "grouped causal dilated convolution": (
        """def conv(float(N,G,C,T) x, float(G,F,C,R) w, int d) -> (y) {
          y(n,g,f,t) +=! t - d*r >= 0 ? x(n,g,c,t - d*r) * w(g,f,c,r) : 0 where t in 0:T
        }""", "conv", lambda: [torch.randn(4, 8, 16, 512), torch.randn(8, 16, 16, 3), 4],
        lambda x, w, d: F.conv1d(F.pad(x.flatten(1, 2), (2 * d, 0)), w.flip(3).flatten(0, 1), dilation=d, groups=8)
        .unflatten(1, (8, 16)),
    ),
    "ALiBi attention": (
        """def attention(float(H,T,D) q, float(H,T,D) k, float(H,T,D) v, float(H) slope) -> (o) {
          s(h,i,j) +=! q(h,i,d) * k(h,j,d)
          p(h,i,j) = j <= i ? s(h,i,j) / sqrt(float(D)) + slope(h) * float(j - i) : -INFINITY
          m(h,i) max=! p(h,i,j)
          e(h,i,j) = exp(p(h,i,j) - m(h,i))
          t(h,i) +=! e(h,i,j)
          u(h,i,d) +=! e(h,i,j) * v(h,j,d)
          o(h,i,d) = u(h,i,d) / t(h,i)
        }""", "attention", lambda: [torch.randn(8, 256, 64) for _ in range(3)] + [alibi(8)], alibi_attention,
    ),
    "argmax": (
        "def largest(float(N,D) x) -> (at) { at(n) argmax=! x(n,d) }", "largest", lambda: [torch.randn(512, 1000)],
        lambda x: x.argmax(1),
    ),
    "cumulative sum and maximum": (
        """def running(float(N,T) x) -> (s, m) {
          s(n,t) = s(n,t-1) + x(n,t) scan t from 0
          m(n,t) = max(m(n,t-1), x(n,t)) scan t from -INFINITY
        }""", "running", lambda: [torch.randn(256, 1024)], lambda x: (x.cumsum(1), x.cummax(1)[0]),
    ),
    "histogram and scatter-add": (
        """def bins(int32(N) at, float(N) x, float(B) like) -> (count, total) {
          count(b) +=! 1 scatter b = at(i) where b in 0:B
          total(b) +=! x(i) scatter b = at(i) where b in 0:B
        }""", "bins", lambda: [torch.randint(0, 256, (100_000,), dtype=torch.int32), torch.randn(100_000), torch.zeros(256)],
        lambda at, x, like: (torch.bincount(at, minlength=256), torch.zeros(256).index_add_(0, at, x)),
    ),
    "bicubic resize": (
        """fn near(t) = (1.25 * t - 2.25) * t * t + 1
        fn far(t) = ((-0.75 * t + 3.75) * t - 6) * t + 3
        def resize(float(C,H,W) x, int OH, int OW) -> (y) {
          v(i) = (float(i) + 0.5) * float(H) / float(OH) - 0.5 where i in 0:OH
          u(j) = (float(j) + 0.5) * float(W) / float(OW) - 0.5 where j in 0:OW
          a(i,k) = k == 0 ? far(v(i) - floor(v(i)) + 1) : k == 1 ? near(v(i) - floor(v(i)))
            : k == 2 ? near(1 - v(i) + floor(v(i))) : far(2 - v(i) + floor(v(i))) where k in 0:4
          b(j,k) = k == 0 ? far(u(j) - floor(u(j)) + 1) : k == 1 ? near(u(j) - floor(u(j)))
            : k == 2 ? near(1 - u(j) + floor(u(j))) : far(2 - u(j) + floor(u(j))) where k in 0:4
          r(c,i,w) +=! a(i,k) * x(c, clamp(int(floor(v(i))) + k - 1, 0, H - 1), w)
          y(c,i,j) +=! b(j,k) * r(c,i, clamp(int(floor(u(j))) + k - 1, 0, W - 1))
        }""", "resize", lambda: [torch.rand(3, 180, 240), 320, 480],
        lambda x, h, w: F.interpolate(x[None], (h, w), mode="bicubic", align_corners=False)[0],
    ),
}  # fmt: skip


def same(found, wanted):
    for mine, other in zip(found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,)):
        torch.testing.assert_close(mine.to(other.dtype), other, rtol=1e-3, atol=1e-3)


def operators(choices):
    """Seven operators, untuned and tuned."""
    rows = []
    for name, (text, definition, make, theirs) in OPERATORS.items():
        op, args = tw.define(text)[definition], make()
        same(op(*args), theirs(*args))
        untuned, other = compare(lambda: op(*args), lambda: theirs(*args))
        row = [name, us(other), us(untuned), f"{other / untuned:.2f}"]
        if choices.tune:
            op.tune(*args, time=choices.tune, progress=False)
            same(op(*args), theirs(*args))
            tuned, other = compare(lambda: op(*args), lambda: theirs(*args))
            row += [us(tuned), f"{other / tuned:.2f}"]
        rows.append(row)
    header = ["us", "torch", "untuned", "times as fast"] + ["tuned", "times as fast"] * bool(choices.tune)
    table("Operators", header, rows)


SAVING = NORM + """
def softmax(float(N,D) x) -> (p) {
  m(n) max=! x(n,d)  e(n,d) = exp(x(n,d) - m(n))  s(n) +=! e(n,d)  p(n,d) = e(n,d) / s(n)
}
def attention(float(H,T,D) q, float(H,T,D) k, float(H,T,D) v) -> (o) {
  a(h,t,u) +=! q(h,t,d) * k(h,u,d)
  m(h,t) max=! a(h,t,u)
  e(h,t,u) = exp(a(h,t,u) - m(h,t))
  z(h,t) +=! e(h,t,u)
  s(h,t,d) +=! e(h,t,u) * v(h,u,d)
  o(h,t,d) = s(h,t,d) / z(h,t)
}
"""


def saving(_):
    """Kernels of a forward pass and its gradient, with recomputed or saved values."""
    module, rows = tw.define(SAVING), []
    for name, shapes in [
        ("norm", [(256, 768), (768,), (768,)]),
        ("bias_gelu_residual_norm", [(256, 768), (768,), (256, 768), (768,), (768,)]),
        ("dense", [(32, 128), (128, 128), (128,)]),
        ("softmax", [(512, 1000)]),
        ("attention", [(8, 512, 64)] * 3),
    ]:
        args = [torch.randn(shape) for shape in shapes]
        op, again = module[name], module.grad(name)
        forward, gradient, kept = module.training(name)
        returned = forward.compute(*args)
        returned = returned if isinstance(returned, tuple) else (returned,)
        known = dict(zip((param[0] for param in op.parameters()), args, strict=True))
        seed = torch.randn_like(returned[0])
        values = {**known, **{value: returned[place] for value, place in kept.items()}}
        of_again = [known.get(param[0], seed) for param in again.parameters()]
        of_kept = [values.get(param[0], seed) for param in gradient.parameters()]
        same(gradient.compute(*of_kept), again.compute(*of_again))
        one, two, three, four = compare(
            lambda: op.compute(*args),
            lambda: forward.compute(*args),
            lambda: again.compute(*of_again),
            lambda: gradient.compute(*of_kept),
            seconds=1.0,
        )
        rows.append((name, us(one), us(two), us(three), us(four), f"{(one + three) / (two + four):.2f}"))
    header = ("", "forward", "and keeps", "gradient, all again", "gradient, kept", "times as fast")
    table("Values that are kept (us)", header, rows)


TABLES = {"overheads": overheads, "training": training, "shapes": shapes, "operators": operators, "saving": saving}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help=f"which of {', '.join(TABLES)}; all by default")
    parser.add_argument("--tune", type=float, default=0, metavar="SECONDS", help="tune each operator for so long")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", type=int, default=1000, help="random batch sizes")
    parser.add_argument("--compared", type=int, default=100, help="of these, so many are compared with kernels of their own")
    choices = parser.parse_args()
    if unknown := set(choices.tables) - set(TABLES):
        parser.error(f"there is no table {', '.join(sorted(unknown))}: they are {', '.join(TABLES)}")
    torch.set_num_threads(choices.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, tensorwright {tw.__version__}, {choices.threads} threads")
    for name in choices.tables or TABLES:
        TABLES[name](choices)


if __name__ == "__main__":
    main()
