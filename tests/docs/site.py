"""Build the docs site: ``python -m tests.docs.site``; the result is in ``.site/html``.

The pages are those of the repository, with the README as the first one. What they link to outside of
``docs/`` (examples, recordings) is copied beside them, so that a link works on the site as it does in
the repository. A folder can't be opened on a site: such a link keeps its text only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
SHIM = ROOT / "docs" / "vendor" / "iframe-worker" / "shim.js"
SHIM_TAG = re.compile(r'<script src="[^"]*/iframe-worker/shim"')
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def lay_out(folder: Path) -> list[Path]:
    """Copy all pages and what they link to, and return the pages, relative to the repository."""
    shutil.rmtree(folder, ignore_errors=True)
    waiting = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    laid: list[Path] = []
    while waiting:
        page = waiting.pop()
        name = page.relative_to(ROOT)
        if name in laid:
            continue
        laid.append(name)
        text = page.read_text(encoding="utf-8")
        for target in _targets(text):
            linked = (page.parent / target).resolve()
            if linked.suffix == ".md":
                waiting.append(linked)
            elif linked.is_file():
                _copy(linked, folder / linked.relative_to(ROOT))
        to = folder / ("index.md" if str(name) == "README.md" else name)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(_without_folders(text, page), encoding="utf-8")
    for asset in [*(ROOT / "docs" / "images").iterdir(), ROOT / "docs" / "site.css", SHIM]:
        _copy(asset, folder / asset.relative_to(ROOT))
    return sorted(laid)


def _targets(text: str) -> list[str]:
    prose = CODE.sub("", text)
    return [link[2] for link in LINK.finditer(prose) if ":" not in link[2]]


def _without_folders(text: str, page: Path) -> str:
    def plain(link: re.Match[str]) -> str:
        target = link[2]
        if ":" not in target and (page.parent / target).is_dir():
            return link[1]
        if (page.parent / target).resolve() == ROOT / "README.md":
            return link[0].replace("README.md", "index.md")
        return link[0]

    return LINK.sub(plain, text)


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)


def build() -> None:
    """Build the site; a broken link or a page that is missing stops it."""
    lay_out(ROOT / ".site" / "pages")
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--clean", "--strict"]
    subprocess.run(command, cwd=ROOT, check=True)
    html = ROOT / ".site" / "html"
    for page in html.rglob("*.html"):
        # Search from disk needs a script that the builder would fetch from the net.
        up = "../" * (len(page.relative_to(html).parts) - 1)
        text = page.read_text(encoding="utf-8")
        local = f'<script src="{up}{SHIM.relative_to(ROOT)}"'
        page.write_text(SHIM_TAG.sub(local, text), encoding="utf-8")


if __name__ == "__main__":
    build()
