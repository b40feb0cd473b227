"""Write the checksums of all pinned packages: run.txt -> run.lock, dev.txt -> dev.lock, and so on.

`python requirements/lock.py` asks the package index for the SHA-256 of every file of every pinned version. torch is
left out: its builds for CPU and CUDA have different checksums and different dependencies. Only `torch.txt` names it,
whose checksums the public workflow uses on machines where the index has a build without CUDA.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.request import Request, urlopen

FOLDER = Path(__file__).parent
INDEX = "https://pypi.org/simple"
LEFT_OUT = {"torch"}
#: Files for interpreters that tiltmeter does not run on.
OTHERS = re.compile(r"-(pp\d+|cp3[0-9]|cp310|cp2\d|graalpy\d+)-(?!abi3)")
LINK = re.compile(r'href="[^"]*/([^"/#]+)#sha256=([0-9a-f]{64})"')


def pins(path: Path) -> dict[str, str]:
    """Names and versions, those of included files too."""
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found |= pins(path.parent / line[3:].strip())
        elif "==" in line and not line.startswith("#"):
            name, version = line.split("#")[0].split(";")[0].strip().split("==")
            found[name.split("[")[0]] = version
    return found


def hashes(pin: tuple[str, str]) -> list[str]:
    """The checksums of all files of one version."""
    name, version = pin
    canonical = re.sub(r"[-_.]+", "-", name).lower()
    request = Request(f"{INDEX}/{canonical}/", headers={"Accept": "text/html"})
    with urlopen(request, timeout=60) as answer:
        page = answer.read().decode()
    start = re.compile(rf"{canonical.replace('-', '[-_.]+')}-{re.escape(version)}(-|\.tar|\.zip)", re.IGNORECASE)
    files = [(unescape(file), digest) for file, digest in LINK.findall(page)]
    found = {digest for file, digest in files if start.match(file) and not OTHERS.search(file)}
    if not found:
        raise ValueError(f"The index has no file of {name} {version}.")
    return sorted(found)


def main() -> None:
    sources = [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("*.txt"))
    for source in sources:
        out = set() if source.stem in LEFT_OUT else LEFT_OUT
        wanted = sorted((name, version) for name, version in pins(source).items() if name not in out)
        with ThreadPoolExecutor(8) as pool:
            every = list(pool.map(hashes, wanted))
        lines = [
            f"# Checksums of {source.name}{' without torch' if out else ''}, by lock.py: "
            "pip install --require-hashes --no-deps -r",
            *(
                " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in found)])
                for (name, version), found in zip(wanted, every, strict=True)
            ),
        ]
        source.with_suffix(".lock").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{source.with_suffix('.lock').name}: {len(wanted)} packages")


if __name__ == "__main__":
    main()
