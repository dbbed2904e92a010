#!/usr/bin/env python3
"""Stubs of the CUDA libraries that the usual torch wheel links to: mkstubs.py SITE-PACKAGES/torch/lib OUT

With them, and the CUDA runtime itself, it can be imported on a machine without CUDA and without downloading
gigabytes; code for CPUs is untouched. Needs a C compiler and binutils.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

PRESENT = re.compile(
    r"^(libtorch|libc10|libshm|ld-linux"
    r"|lib(pthread|m|dl|rt|c|stdc\+\+|gcc_s|gomp|gfortran|cudart|cupti|quadmath|z|cuda)\.so)"
)


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def scan(directory):
    """The needed libraries, the library of each symbol version, and the symbols of each version."""
    needed, home, symbols = set(), {}, collections.defaultdict(set)
    for file in directory.glob("*.so*"):
        for line in lines("readelf", "-d", file):
            if found := re.search(r"NEEDED.*\[(.*)\]", line):
                needed.add(found[1])
        library = None
        for line in lines("readelf", "-VW", file):
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            elif library and (found := re.search(r"Name: (\S+)", line)):
                home[found[1]] = library
        for line in lines("nm", "-D", "--undefined-only", file):
            if found := re.match(r"\s*\S\s+([A-Za-z_]\w*)@+(\S+)", line):
                symbols[found[2]].add(found[1])
            elif found := re.match(r"\s*[Uu]\s+((?:cu|nccl|nvrtc|nvshmem|cudnn)\w*)$", line):
                symbols[""].add(found[1])
    return needed, home, symbols


def definitions(names):
    return "".join(f"long {name}(void) {{ return 0; }}\n" for name in sorted(names))


def texts(library, home, symbols):
    """The C source of a stub and its version script."""
    source = script = ""
    for version, where in home.items():
        if where == library and symbols[version]:
            source += definitions(symbols[version])
            script += f"{version} {{ global: {' '.join(f'{name};' for name in sorted(symbols[version]))} }};\n"
    if not script:
        prefix = re.match(r"lib(\w+?)(Lt)?\.so", library)[1].replace("cufile", "cuFile")
        source = definitions(name for name in symbols[""] if name.startswith(prefix))
    return source, script


def main():
    directory, out = map(pathlib.Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    needed, home, symbols = scan(directory)
    with tempfile.TemporaryDirectory() as scratch:
        source_file, script_file = pathlib.Path(scratch, "stub.c"), pathlib.Path(scratch, "stub.map")
        for library in sorted(name for name in needed if not PRESENT.match(name)):
            source, script = texts(library, home, symbols)
            source_file.write_text(source)
            script_file.write_text(script)
            versions = [f"-Wl,--version-script={script_file}"] if script else []
            subprocess.check_call(["cc", "-w", "-shared", "-fPIC", source_file, f"-Wl,-soname,{library}",
                                   "-o", out / library, *versions])  # fmt: skip


if __name__ == "__main__":
    main()
