"""Orders against the published ones, and the derived ones of other sizes."""

import pytest

from conftest import EXAMPLES, ROOT

REFERENCE = ROOT / "test" / "reference" / "orders"


def order(tools, schedule, ranks, count):
    done = tools.opt(EXAMPLES / f"{schedule}.pipe", f"--ranks={ranks}", f"--microbatches={count}",
                     "--emit=torch-csv")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("schedule,ranks,count", [
    ("dualpipe", 8, 20), ("dualpipe", 4, 10), ("dualpipev", 4, 10)])
def test_equals_the_published_order(tools, schedule, ranks, count):
    assert order(tools, schedule, ranks, count) == (REFERENCE / f"{schedule}-r{ranks}-m{count}.csv").read_text()


@pytest.mark.parametrize("ranks,count", [(1, 2), (2, 4), (3, 8), (5, 12), (8, 32)])
def test_dualpipev_is_half_of_dualpipe(tools, ranks, count):
    """Rank r of DualPipeV does what rank r of DualPipe on twice the ranks does, with the second
    direction's micro-batches (numbered from `count` on there) folded onto the first's."""
    import re

    folded = []
    for line in order(tools, "dualpipe", 2 * ranks, 2 * count).splitlines()[:ranks]:
        folded.append(re.sub(r"([FBIW])(\d+)", lambda m: m[1] + str(int(m[2]) % count), line))
    assert order(tools, "dualpipev", ranks, count).splitlines() == folded


@pytest.mark.parametrize("ranks,count", [(2, 4), (4, 8), (6, 14), (16, 64)])
def test_dualpipe_is_its_own_mirror(tools, ranks, count):
    """The last rank does what the first does with the two directions exchanged."""
    import re

    def mirror(line):
        half = count // 2
        return re.sub(r"([FBIW])(\d+)", lambda m: m[1] + str((int(m[2]) + half) % count), line)

    lines = order(tools, "dualpipe", ranks, count).splitlines()
    assert [mirror(line) for line in reversed(lines)] == lines


@pytest.mark.parametrize("schedule,ranks,count", [("dualpipe", 8, 20), ("dualpipev", 4, 10), ("1f1b", 4, 8)])
def test_same_input_same_bytes(tools, tmp_path, schedule, ranks, count):
    outputs = []
    for name in ("a.dpx", "b.dpx"):
        done = tools.opt(EXAMPLES / f"{schedule}.pipe", f"--ranks={ranks}", f"--microbatches={count}",
                         "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        outputs.append((tmp_path / name).read_bytes())
    assert outputs[0] == outputs[1]
