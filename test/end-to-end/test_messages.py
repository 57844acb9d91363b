"""Every error message of the front end, the checker, the readers, the kernels and the simulation stands in a test.

The longest piece of text of each message must occur in some test. Pieces of one message that
are joined by values cannot be compared as a whole; the tests themselves do that.
"""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["lib/Frontend", "lib/Schedule", "lib/Target/Torch", "runtime/costs",
           "runtime/device/cuda", "runtime/executor/Emitted*.cpp", "runtime/kernels", "runtime/memory", "runtime/pictures",
           "runtime/processes",
           "runtime/profile", "runtime/sim", "runtime/transport", "runtime/transport/gpu",
           "runtime/transport/nccl", "tools/launcher"]
# How messages are made: each of these is followed by its arguments in brackets.
MAKERS = ["error", "errorExpected", "report", "fail", "failure", "reportKind", "note", "missing"]
LITERAL = r'"((?:[^"\\\n]|\\.)*)"'


def strip_comments(text):
    """Without comments and characters, which may hold quotes."""
    token = re.compile(r"%s|'(?:[^'\\\n]|\\.)+'|//[^\n]*" % LITERAL)
    return token.sub(lambda found: found[0] if found[0][0] == '"' else "0", text)


def join_literals(text):
    """Adjacent literals become one, as the compiler does."""
    return re.sub(r'"\s*\n?\s*"', "", text)


def unescape(text):
    return text.replace('\\"', '"').replace("\\\\", "\\")


def find_arguments(text, start):
    """The text between the bracket at `start` and its partner."""
    depth, at = 0, start
    while at < len(text):
        if text[at] == '"':
            at = re.compile(LITERAL).match(text, at).end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start : at + 1]
        at += 1
    return text[start:]


def find_messages():
    for folder in SOURCES:
        for path in sorted(ROOT.glob(folder if folder.endswith(".cpp") else f"{folder}/*.cpp")):
            text = join_literals(strip_comments(path.read_text()))
            for call in re.finditer(r"\b(?:%s)\(" % "|".join(MAKERS), text):
                arguments = find_arguments(text, call.end() - 1)
                pieces = [unescape(piece) for piece in re.findall(LITERAL, arguments)]
                # Values of fmt::format part a literal.
                pieces = [part for piece in pieces for part in re.split(r"\{[^{}]*\}", piece)]
                longest = max(pieces, key=len, default="").strip()
                if len(longest) >= 8:
                    yield path.name, longest


def read_tests():
    texts = []
    for path in sorted((ROOT / "test").rglob("*")):
        if path.suffix in {".cpp", ".h", ".pipe", ".test", ".mlir", ".py"} and path != pathlib.Path(__file__):
            text = path.read_text()
            if path.suffix in {".cpp", ".h", ".py"}:
                text = unescape(join_literals(text))
            # A pattern of FileCheck escapes nothing but its own brackets.
            texts.append(text)
    texts.append((ROOT / "docs/language.md").read_text())
    texts.append((ROOT / "docs/rules.md").read_text())
    return "\n".join(texts)


MESSAGES = sorted(set(find_messages()))


@pytest.fixture(scope="module")
def tests():
    return read_tests()


def test_messages_are_found():
    assert len(MESSAGES) > 150


@pytest.mark.parametrize("name, message", MESSAGES, ids=lambda value: value[:60])
def test_message_stands_in_a_test(name, message, tests):
    assert message in tests, f"no test shows the message of {name}: {message}"
