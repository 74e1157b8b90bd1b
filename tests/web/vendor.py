"""The scripts and styles of others that the pages are served with: `make assets` fetches them again.

Versions are pinned here, and each package must have the sha512 that stands here. Only what the pages load is copied, as it
came, with the licence. `vendor.json` lists it: name, version, hash of the package, licence, and the hash of each file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).parents[2] / "src" / "baton" / "web" / "static" / "vendor"
FOR_TESTS = Path(__file__).parent / "vendor"
"""What only tests load, and no wheel holds."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the npm registry, its sha512 (base64, as npm writes it), and the files to keep."""

    name: str
    version: str
    sha512: str
    licence: str
    files: dict[str, str]
    """Path inside the package -> file name here."""


PACKAGES = (
    Package(
        "htmx.org",
        "4.0.1",
        "oF7JgXhDW9UXCy/k1ZYFUQgzu/rm19ORWPSPNL91vPluB2PB9+MV55tyQdH/w7o2EAbTYUG5SDW1R60mdkdqGg==",
        "0BSD",
        {
            "dist/htmx.min.js": "htmx.min.js",
            # Its security extension.
            "dist/ext/hx-csp.min.js": "hx-csp.min.js",
            "LICENSE": "htmx.LICENSE.txt",
        },
    ),
    Package(
        "uplot",
        "1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        "MIT",
        {
            "dist/uPlot.iife.min.js": "uPlot.iife.min.js",
            "dist/uPlot.min.css": "uPlot.min.css",
            "LICENSE": "uPlot.LICENSE.txt",
        },
    ),
    Package(
        "@dagrejs/dagre",
        "3.1.3",
        "X4aUTwOReZvthaZWOVHqlJ52/ZdhZFEM4+Lh/uR4XooUSLE6p71bcy7MPGzYnNUcNh+nj+i/qJQpCMIdQnSmrg==",
        "MIT",
        {
            "dist/dagre.min.js": "dagre.min.js",
            "LICENSE": "dagre.LICENSE.txt",
            # Of the code that dagre's file has in it.
            "dist/dagre.min.js.LEGAL.txt": "dagre.min.js.LEGAL.txt",
        },
    ),
)

TEST_PACKAGES = (
    Package(
        "axe-core",
        "4.14.1",
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        "MPL-2.0",
        {"axe.min.js": "axe.min.js", "LICENSE": "axe.LICENSE.txt"},
    ),
)


def fetch(package: Package, folder: Path) -> dict[str, bytes]:
    """The files of a package by their path inside it.

    Raises:
        SystemExit: the package is not the one whose hash is pinned.
    """
    asked = f"{package.name}@{package.version}"
    packed = subprocess.run(
        ["npm", "pack", asked, "--json", "--silent", "--ignore-scripts"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    archive = folder / json.loads(packed.stdout)[0]["filename"]
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != package.sha512:
        raise SystemExit(f"{asked} has the sha512 {digest}, and not {package.sha512}")
    with tarfile.open(archive) as tar:
        return {
            path: kept.read()
            for path in package.files
            if (kept := tar.extractfile(f"package/{path}")) is not None
        }


def write(packages: tuple[Package, ...], folder: Path) -> None:
    """Fetch packages, check them, and write their files and the list."""
    listed: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        contents = [fetch(package, Path(temporary)) for package in packages]
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for package, files in zip(packages, contents, strict=True):
        for path, name in package.files.items():
            (folder / name).write_bytes(files[path])
        hashes = {
            name: hashlib.sha256(files[path]).hexdigest() for path, name in package.files.items()
        }
        listed.append(
            {
                "name": package.name,
                "version": package.version,
                "licence": package.licence,
                "sha512": package.sha512,
                "files": hashes,
            }
        )
    (folder / "vendor.json").write_text(json.dumps(listed, indent=2) + "\n")


if __name__ == "__main__":
    write(PACKAGES, VENDOR)
    write(TEST_PACKAGES, FOR_TESTS)
