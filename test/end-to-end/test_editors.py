"""The grammars of the editors know the words of the language, and no others."""

import json
import re
import shutil
import subprocess

import pytest

from conftest import EXAMPLES, ROOT

EDITORS = ROOT / "editors"
TEXTMATE = EDITORS / "textmate" / "pipe.tmLanguage.json"


def language_words():
    text = (ROOT / "lib" / "Frontend" / "TokenKinds.def").read_text()
    words = re.findall(r'^KEYWORD\(\w+, "(\w+)"\)', text, re.M)
    words += re.findall(r'^CONTEXTUAL\("(\w+)"\)', text, re.M)
    assert len(words) >= 30
    return set(words)


def regexes_in(node):
    """All regular expressions of a TextMate grammar."""
    if isinstance(node, list):
        return [found for item in node for found in regexes_in(item)]
    if not isinstance(node, dict):
        return []
    own = [node[key] for key in ("match", "begin", "end") if key in node]
    return own + [found for value in node.values() for found in regexes_in(value)]


def includes_in(node):
    if isinstance(node, list):
        return [found for item in node for found in includes_in(item)]
    if not isinstance(node, dict):
        return []
    own = [node["include"]] if "include" in node else []
    return own + [found for value in node.values() for found in includes_in(value)]


def textmate_words():
    lists = [found.group(1) for regex in regexes_in(json.loads(TEXTMATE.read_text()))
             if (found := re.fullmatch(r"\\b\(\?:([a-z_|]+)\)\\b", regex))]
    return [word for words in lists for word in words.split("|")]


def vim_words():
    text = (EDITORS / "vim" / "syntax" / "pipe.vim").read_text()
    return [word for words in re.findall(r"^syntax keyword \w+ (.*)$", text, re.M)
            for word in words.split()]


@pytest.mark.parametrize("words", [textmate_words, vim_words])
def test_grammar_knows_the_words_of_the_language(words):
    assert sorted(words()) == sorted(language_words())


def test_regexes_of_the_textmate_grammar_compile():
    regexes = regexes_in(json.loads(TEXTMATE.read_text()))
    assert len(regexes) > 10
    for regex in regexes:
        re.compile(regex)


def test_parts_of_the_textmate_grammar_exist():
    grammar = json.loads(TEXTMATE.read_text())
    includes = includes_in(grammar)
    assert {f"#{name}" for name in grammar["repository"]} == set(includes)


def test_vscode_uses_the_textmate_grammar():
    folder = EDITORS / "vscode"
    contributes = json.loads((folder / "package.json").read_text())["contributes"]
    [grammar] = contributes["grammars"]
    assert (folder / grammar["path"]).resolve() == TEXTMATE
    assert grammar["scopeName"] == json.loads(TEXTMATE.read_text())["scopeName"]
    [language] = contributes["languages"]
    assert language["extensions"] == [".pipe"]
    configuration = json.loads((folder / language["configuration"]).read_text())
    assert configuration["comments"]["lineComment"] == "//"
    for pattern in configuration["indentationRules"].values():
        re.compile(pattern)


def run_vim(tmp_path, text, *commands):
    """Opens a text as x.pipe, runs the commands and returns what they wrote to `out`."""
    if not shutil.which("vim"):
        pytest.skip("vim is not installed")
    (tmp_path / "x.pipe").write_text(text)
    script = [f"set runtimepath+={EDITORS / 'vim'}", "filetype plugin indent on", "syntax on", "edit x.pipe",
              *commands, "redir! > messages", "silent messages", "redir END", "qall!"]
    (tmp_path / "script.vim").write_text("\n".join(script) + "\n")
    subprocess.run(["vim", "-N", "-u", "NONE", "-i", "NONE", "-n", "-es", "-S", "script.vim"], cwd=tmp_path,
                   timeout=60, stdin=subprocess.DEVNULL, capture_output=True)
    errors = [line for line in (tmp_path / "messages").read_text().splitlines()
              if re.match(r"E\d+:|Error", line)]
    assert not errors
    return (tmp_path / "out").read_text().splitlines()


def test_vim_colours_a_file(tmp_path):
    text = 'pipe 1\nrank r { fwd main @ 2 }            // why\nrequire a "at least {2 * P} of \\" it"\n'
    places = {(1, 1): "pipeDeclaration", (2, 1): "pipeSection", (2, 10): "pipeOp",
              (2, 14): "", (2, 21): "pipeNumber", (2, 40): "pipeComment", (3, 12): "pipeString",
              (3, 22): "pipeNumber", (3, 30): "pipeString", (3, 33): "pipeEscape"}
    asks = [f"call add(g:out, synIDattr(synID({line}, {column}, 1), 'name'))" for line, column in places]
    found = run_vim(tmp_path, text, "let g:out = [&filetype]", *asks, "call writefile(g:out, 'out')")
    assert found == ["pipe", *places.values()]


@pytest.mark.parametrize("name", ["1f1b.pipe", "dualpipe.pipe", "dualpipev.pipe"])
def test_vim_indents_as_the_examples_are(tmp_path, name):
    text = (EXAMPLES / name).read_text()
    flat = "\n".join(line if line.startswith("//") else line.lstrip() for line in text.split("\n"))
    assert run_vim(tmp_path, flat, "normal gg=G", "write! out") == text.splitlines()
