"""The examples of the READMEs run as they stand, in one process with torch and llvmlite."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", ["README.md", "crates/python/README.md"])
def test_the_examples_run(path):
    llvm = pytest.importorskip("llvmlite.binding")
    pytest.importorskip("torch")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    blocks = BLOCK.findall((ROOT / path).read_text(encoding="utf-8"))
    assert blocks
    scope = {}
    for block in blocks:
        exec(compile(block, path, "exec"), scope)
    # Another LLVM still works beside ours.
    module = llvm.parse_assembly("define i32 @f(i32 %x) {\n %y = add i32 %x, 1\n ret i32 %y\n}")
    machine = llvm.Target.from_default_triple().create_target_machine()
    assert len(machine.emit_object(module)) > 100
