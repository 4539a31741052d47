"""The documents are held to the code: names, commands, examples and the command that CI runs."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import ltm
import ltm_models
import ltm_text
from ltm_console.cli import cli

from .test_cli import commands

GROUPS = "|".join(name for name, command in cli.commands.items() if isinstance(command, click.Group))
ROOT = Path(__file__).resolve().parent.parent
CHINESE = (ROOT / "README_zh_Hans.md").read_text("utf-8")
README, GUIDE = (ROOT / "README.md").read_text(), (ROOT / "docs" / "guide.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_readme_example_prints_what_it_says(tmp_path: Path) -> None:
    (example,), (printed, *_) = blocks(README, "python"), blocks(README, "text")
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == printed


def test_ci_runs_the_readme_s_test_command() -> None:
    (command,) = [block.strip() for block in blocks(README, "sh") if "pytest" in block]
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()


def test_the_readme_s_demo_command_names_a_real_command() -> None:
    assert any("ltm demo" in block for block in blocks(README, "sh"))
    assert "demo" in cli.commands


@pytest.mark.parametrize("name", [name for name in ltm.__all__ if name not in ("open", "warm_up")])
def test_every_public_name_is_in_the_guide(name: str) -> None:
    assert re.search(rf"\b{name}\b", GUIDE + README), name


def test_every_command_is_in_the_guide_and_no_other() -> None:
    ours = {" ".join(path) for path in commands()}
    told = {match.strip() for match in re.findall(rf"`ltm ((?:(?:{GROUPS}) )?[a-z][a-z-]*)", GUIDE + README)}
    assert told == ours


def test_every_option_of_the_group_is_in_the_guide() -> None:
    for parameter in cli.params:
        if isinstance(parameter, click.Option) and parameter.envvar:
            assert parameter.opts[0] in GUIDE
            assert str(parameter.envvar) in GUIDE


def test_every_public_method_has_a_docstring() -> None:
    for kind in (ltm.Memory, ltm.Space, ltm.Profiles, *(getattr(ltm, name) for name in ltm.__all__)):
        assert kind.__doc__, kind
        for name, value in vars(kind).items() if isinstance(kind, type) else ():
            if callable(value) and not name.startswith("_"):
                assert value.__doc__ or kind in (ltm.E5, ltm.HTTPEmbedder, ltm.HashEmbedder), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("module", [ltm, ltm_text, ltm_models])
def test_doctests(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


def test_packaging_traps_stay_avoided() -> None:
    assert (ROOT / "migrations" / "__init__.py").read_text().startswith('"""')
    assert not list((ROOT / "console").glob("*.sql"))
    for path in (ROOT / "console").glob("*.py"):
        assert not re.search(r"\b(SELECT|INSERT|UPDATE|DELETE)\s", path.read_text()), path
    for name in ("ltm_text.py", "ltm_models.py"):
        assert not re.search(r"\b(SELECT|INSERT INTO|DELETE FROM)\s", (ROOT / name).read_text()), name


def test_the_chinese_readme_s_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(CHINESE, "python")
    exec(example, {})
    assert capsys.readouterr().out.startswith("我對花生過敏\n")
    assert blocks(CHINESE, "sh")[0] in blocks(README, "sh")
