"""The documentation shows what the tools really print."""

import subprocess
import sys

from conftest import ROOT


def test_output_in_the_pages_is_current():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "update-docs.py", "--check"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
