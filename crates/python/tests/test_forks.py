"""Forks while threads run operators."""

import os
import subprocess
import sys

SCRIPT = """
import os, sys, threading, time
import numpy as np
import tensorwright as tw

TEXT = "def m(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
one, two = tw.define(TEXT).m, tw.define(TEXT, threads=2).m
square = lambda n: np.ones((n, n), "float32")
stop = threading.Event()

def call(op):
    a = square(96)
    while not stop.is_set():
        op(a, a)

def compile():
    for n in range(1000):
        if stop.is_set():
            return
        one(np.ones((2 + n, 3), "float32"), np.ones((3, 2), "float32"))

threads = [threading.Thread(target=call, args=(op,)) for op in (one, two, two)] + [threading.Thread(target=compile)]
[thread.start() for thread in threads]
time.sleep(0.2)
for count in range(50):
    child = os.fork()
    if child == 0:
        right = one(square(96), square(96))[0, 0] == 96.0 and two(square(96), square(96))[0, 0] == 96.0
        # A kernel of its own, with the locks of the compiler.
        right = right and (count % 5 or one(square(7), np.ones((7, 2 + count), "float32"))[0, 0] == 7.0)
        os._exit(0 if right else 1)
    end = time.monotonic() + 60
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(child, 9)
            print(f"child {count} hangs", flush=True)
            os._exit(2)
        time.sleep(0.001)
    if done[1] != 0:
        print(f"child {count} ended with {done[1]}", flush=True)
        os._exit(3)
stop.set()
[thread.join() for thread in threads]
print("all children ended")
"""


def test_children_of_a_busy_process_can_call_and_compile():
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.stdout == "all children ended\n", done.stdout + done.stderr
