"""Build the wheel, install it in a new environment, and use it from another folder; run by .ci/run.

Nothing generic may land in site-packages, the migrations and the console must be in it, and the command must work.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = {"ltm.py", "ltm_text.py", "ltm_models.py", "ltm_formats.py", "ltm_console", "ltm_migrations"}
TRY = """
import pathlib, sys
import ltm
assert not ({"apsw", "pydantic", "jieba", "http.server"} & set(sys.modules)), "import ltm is not light"
with ltm.open(sys.argv[1]) as memory:
    space = memory.space(ltm.Scope("b", "group", "1"), speaker=ltm.Speaker("u", "王小明"))
    space.remember("我下周三飞东京")
    assert space.recall("小明什么时候飞东京").hits, "recall finds nothing"
    assert memory.check() == []
    from ltm_console import api, web
    with web.Server(api.Console(memory, host="serve")) as server:
        assert {"/", "/app.js", "/panels/episodes.js", "/words/zh_Hans.js"} <= set(server.files), "the page is not whole"
print(pathlib.Path(ltm.__file__).parent)
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "new", with_pip=True)
        python = folder / "new" / "bin" / "python"
        site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
        run(python, "-m", "pip", "install", "-q", wheel, cwd=folder)
        root = Path(folder.anchor)
        assert run(folder / "new" / "bin" / "ltm", "--version", cwd=root).startswith("ltm, version")
        assert Path(run(python, "-c", TRY, folder / "a.db", cwd=root).strip()) == site
        assert "Lisbon" in run(folder / "new" / "bin" / "ltm", "demo", cwd=root)
        (record,) = site.glob("ltm_sqlite-*.dist-info/RECORD")
        names = {line.split(",")[0].split("/")[0] for line in record.read_text().splitlines()}
        landed = {part for part in names if not part.endswith(".dist-info") and part not in ("..", "__pycache__")}
        assert landed == OURS, landed
    print(f"{wheel.name}: installs, runs, and adds {', '.join(sorted(OURS))}")


if __name__ == "__main__":
    main()
