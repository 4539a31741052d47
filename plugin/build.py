"""Make the package that a LangBot host installs: the plugin with the engine inside it.

    python plugin/build.py [--out dist] [--version 0.1.0]

A .lbpkg is a zip with the manifest at its root. The host takes at most 512 entries and 10 MiB by upload; both are checked here.
"""

from __future__ import annotations

import argparse
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINE = {
    "ltm.py": "ltm.py",
    "ltm_text.py": "ltm_text.py",
    "ltm_models.py": "ltm_models.py",
    "ltm_formats.py": "ltm_formats.py",
    "migrations": "ltm_migrations",
    "console": "ltm_console",
}
PAGE = "components/pages/memory_console"  # the host's page is the console's, with the host's script in front
HOST_SCRIPT = '<script src="/api/v1/plugins/_sdk/page-sdk.js"></script>'
LEFT_OUT = {"build.py", "__pycache__", "dist"}
IMPORT = re.compile(r'^import (?:\* as (\w+)|\{([^}]*)\}|(\w+)) from "([^"]+)";$', re.M)
EXPORT = re.compile(r"^export (?:default|(?:const|class|function|async function) (\w+))", re.M)
ENTRIES, BYTES = 512, 10 << 20
# Seconds since 1980 that every entry is given: the same sources make the same package.
STAMP = (2026, 1, 1, 0, 0, 0)


def sources() -> dict[str, Path]:
    """Names in the package, and the files they are made of."""
    found = {}
    for path in sorted((ROOT / "plugin").rglob("*")):
        inside = path.relative_to(ROOT / "plugin")
        if path.is_file() and not LEFT_OUT & set(inside.parts):
            found[inside.as_posix()] = path
    for source, name in ENGINE.items():
        base = ROOT / source
        for path in sorted(base.rglob("*")) if base.is_dir() else [base]:
            if path.is_file() and path.suffix in (".py", ".sql") and "__pycache__" not in path.parts:
                found[f"{name}/{path.relative_to(base).as_posix()}" if base.is_dir() else name] = path
    return found


def bundle(base: Path, entry: str) -> str:
    """A module of the page and all that it imports as one script: each in a function of its own, after those that it needs."""
    made: dict[Path, str] = {}

    def add(path: Path, above: tuple[Path, ...] = ()) -> str:
        own = "$" + re.sub(r"\W", "$", path.relative_to(base).with_suffix("").as_posix())
        if path in above:
            raise SystemExit(f"{path} is imported in a circle")
        if path in made:
            return own

        def taken(found: re.Match[str]) -> str:
            whole, names, default, source = found.groups()
            wanted = whole or ("{" + names.replace(" as ", ": ") + "}" if names else f"{{ default: {default} }}")
            return f"const {wanted} = {add((path.parent / source).resolve(), (*above, path))};"

        text = IMPORT.sub(taken, path.read_text("utf-8"))
        names = [found[1] or f"default: {own}" for found in EXPORT.finditer(text)]
        text = EXPORT.sub(lambda found: found[0][len("export ") :] if found[1] else f"const {own} =", text)
        if left := re.search(r"^(import|export)\b.*|\bimport[.(].*|</script.*", text, re.M):
            raise SystemExit(f"{path}: build.py does not know how to put this into one page: {left[0]}")
        made[path] = f"const {own} = (() => {{\n{text.strip()}\nreturn {{ {', '.join(names)} }};\n}})();\n"
        return own

    base = base.resolve()
    add(base / entry)
    return "\n".join(made.values())


def page() -> dict[str, bytes]:
    """The console's page as the host serves it: one file, since its dashboard opens it as a blob, from where no path leads on."""
    base = ROOT / "console" / "static"
    made = (base / "index.html").read_text("utf-8")
    for mark, text in (
        ("<!-- host -->", HOST_SCRIPT),
        ('<link rel="stylesheet" href="style.css">', f"<style>\n{(base / 'style.css').read_text('utf-8')}</style>"),
        ('<script type="module" src="app.js"></script>', f'<script type="module">\n{bundle(base, "app.js")}</script>'),
    ):
        if made.count(mark) != 1:
            raise SystemExit(f"console/static/index.html must say once: {mark}")
        made = made.replace(mark, text)
    words = {f"{PAGE}/i18n/{name}.json": b"{}\n" for name in ("en_US", "zh_Hans")}  # the host's script asks for them
    return {f"{PAGE}/index.html": made.encode(), **words}


def pages(found: dict[str, Path]) -> str:
    """The manifest's list of pages, which the host reads instead of looking for them."""
    rows = []
    for name in sorted(found):
        if re.fullmatch(r"components/pages/[^/]+/[^/]+\.yaml", name):
            text = found[name].read_text("utf-8")
            label = re.search(r"^  label: (\{.*\})$", text, re.M)
            id, path = re.search(r"^  name: (\S+)$", text, re.M), re.search(r"^  path: (\S+)$", text, re.M)
            if not (label and id and path):
                raise SystemExit(f"{name} must have name, label and path on lines of their own")
            folder = name.rpartition("/")[0]
            rows.append(f"    - {{id: {id[1]}, label: {label[1]}, path: {folder}/{path[1]}}}")
    return "\n".join(["  pages:", *rows]) if rows else ""


def build(out: Path, version: str = "") -> Path:
    """Write the package and return its path."""
    found = sources()
    manifest = found.pop("manifest.yaml").read_text("utf-8")
    if version:
        manifest = re.sub(r"^  version: .*$", f"  version: {version}", manifest, count=1, flags=re.M)
    manifest = manifest.replace("\nexecution:", f"\n{pages(found)}\nexecution:", 1)
    name, author, number = (re.search(rf"^  {key}: (\S+)$", manifest, re.M) for key in ("name", "author", "version"))
    if not (name and author and number):
        raise SystemExit("the manifest must have author, name and version")
    out.mkdir(parents=True, exist_ok=True)
    package = out / f"{author[1]}-{name[1]}-{number[1]}.lbpkg"
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("manifest.yaml", STAMP), manifest, zipfile.ZIP_DEFLATED)
        for inside, raw in sorted({**{name: path.read_bytes() for name, path in found.items()}, **page()}.items()):
            archive.writestr(zipfile.ZipInfo(inside, STAMP), raw, zipfile.ZIP_DEFLATED)
        entries = len(archive.infolist())
    size = package.stat().st_size
    if entries > ENTRIES or size > BYTES:
        raise SystemExit(f"{package} has {entries} entries and {size:,} bytes; the host takes {ENTRIES} and {BYTES:,}")
    return package


def main() -> None:
    """Build, and say what was built."""
    parser = argparse.ArgumentParser(description="Build the LangBot package.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--version", default="")
    options = parser.parse_args()
    package = build(options.out, options.version)
    print(f"{package} ({package.stat().st_size:,} bytes)", file=sys.stdout)


if __name__ == "__main__":
    main()
