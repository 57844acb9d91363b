"""How lit runs the text tests: tools of the build first, then FileCheck and friends of LLVM 22."""

import os

import lit.formats

config.name = "dualpipe"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".pipe", ".test"]
config.excludes = ["unit", "end-to-end", "numerics", "support", "reference", "Inputs", "fuzz", "fuzz-regressions"]
config.test_source_root = os.path.join(config.dualpipe_source_dir, "test")
config.test_exec_root = os.path.join(config.dualpipe_binary_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [
        os.path.join(config.dualpipe_binary_dir, "bin"),
        config.llvm_tools_dir,
        config.environment.get("PATH", os.environ["PATH"]),
    ]
)
config.environment["LC_ALL"] = "C.UTF-8"
config.substitutions.append(("%examples", os.path.join(config.dualpipe_source_dir, "examples")))
config.substitutions.append(("%reference", os.path.join(config.dualpipe_source_dir, "test", "reference")))
