"""The mlp model against PyTorch's autograd, on the same numbers.

`mlp-numbers` (mlp_numbers.cpp) trains two stages for one step and writes what went in and came out;
PyTorch computes it again. Relative to a tensor's largest element the two agree within 1e-13 in
float64 and 1e-6 in float32, and PyTorch in float64 with the float32 model within 1e-5. The bf16 model
is within 1.5 % of float64; PyTorch's autocast, which rounds gradients to bf16 as well, is further away.
"""

import os
import pathlib
import subprocess

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not there; Debian's is python3-torch")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("DUALPIPE_BUILD_DIR", ROOT / "build")) / "bin"
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}
# Of parameters and gradients.
SUM_DTYPES = {**DTYPES, "bf16": torch.float32}


class Numbers:
    """What the model wrote."""

    def __init__(self, directory, dtype):
        self.directory = pathlib.Path(directory)
        self.dtype = DTYPES[dtype]
        self.sum_dtype = SUM_DTYPES[dtype]
        lines = (self.directory / "sizes.txt").read_text().splitlines()
        self.sizes = {key: float(value) for key, value in (line.split() for line in lines)}
        self.stages, self.blocks, self.microbatches, hidden, seq, batch = (
            int(self.sizes[key])
            for key in ("stages", "blocks", "microbatches", "hidden", "seq", "batch"))
        self.activation = (batch, seq, hidden)
        self.weights = [(4 * hidden, hidden), (hidden, 4 * hidden)]

    def read(self, name, shape, dtype):
        data = bytearray((self.directory / f"{name}.bin").read_bytes())
        return torch.frombuffer(data, dtype=dtype).reshape(shape)

    def read_params(self, what):
        return [[self.read(f"{what}{stage}_{i}", self.weights[i % 2], self.sum_dtype)
                 for i in range(2 * self.blocks)] for stage in range(self.stages)]

    def read_activation(self, what, microbatch):
        return self.read(f"{what}{microbatch}", self.activation, self.dtype)


def forward(x, params):
    for stage in params:
        for w1, w2 in zip(stage[0::2], stage[1::2]):
            hidden = torch.nn.functional.gelu(torch.nn.functional.linear(x, w1))
            x = torch.nn.functional.linear(hidden, w2)
    return x


def train(numbers, dtype, autocast=False):
    """One step with autograd; returns losses, gradients and stepped weights."""
    params = [[weight.to(dtype).clone().requires_grad_() for weight in stage]
              for stage in numbers.read_params("weight")]
    losses = []
    for microbatch in range(numbers.microbatches):
        x = numbers.read_activation("input", microbatch).to(dtype)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            x = forward(x, params)
        x = x.to(dtype)
        labels = numbers.read_activation("labels", microbatch).to(dtype)
        loss = torch.nn.functional.mse_loss(x, labels)
        (loss / numbers.microbatches).backward()
        losses.append(loss.detach())
    grads = [[weight.grad for weight in stage] for stage in params]
    rate = numbers.sizes["learning_rate"]
    stepped = [[(weight - rate * weight.grad).detach() for weight in stage] for stage in params]
    return torch.stack(losses), grads, stepped


def difference(ours, theirs):
    """The largest difference relative to the largest element."""
    ours, theirs = ours.double(), theirs.double()
    assert theirs.abs().max() > 0, "a tensor of zeros shows nothing"
    return float((ours - theirs).abs().max() / theirs.abs().max())


@pytest.mark.parametrize("model, reference, tolerance",
                         [("f64", "f64", 1e-13), ("f32", "f32", 1e-6), ("f32", "f64", 1e-5),
                          ("bf16", "autocast", 4e-2), ("bf16", "f64", 1.5e-2)])
def test_mlp_agrees_with_autograd(tmp_path, model, reference, tolerance):
    subprocess.run([BIN / "mlp-numbers", tmp_path, model], check=True)
    numbers = Numbers(tmp_path, model)
    autocast = reference == "autocast"
    losses, grads, stepped = train(numbers, torch.float32 if autocast else DTYPES[reference], autocast)
    found = {"losses": difference(numbers.read("losses", (-1,), torch.float64), losses)}
    for what, theirs in (("grad", grads), ("stepped", stepped)):
        ours = numbers.read_params(what)
        found[what] = max(difference(a, b) for stage_a, stage_b in zip(ours, theirs)
                          for a, b in zip(stage_a, stage_b))
    print(", ".join(f"{what} {value:.1e}" for what, value in found.items()))
    assert max(found.values()) <= tolerance, found
