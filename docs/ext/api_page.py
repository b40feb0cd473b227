"""The reference, made from the public names: what `tm.X` and `tm.room.X` offer, and nothing else."""

import inspect
from types import ModuleType

from sphinx.application import Sphinx

PAGE = "api"


def rooms(package: ModuleType, address: str) -> list[tuple[str, ModuleType]]:
    """The package and every public module in it, with their public addresses."""
    found = [(address, package)]
    for name in sorted(package.__all__):
        value = getattr(package, name)
        if inspect.ismodule(value):
            found += rooms(value, f"{address}.{name}")
    return found


def directive(address: str, value: object) -> list[str]:
    """The lines that document one name."""
    if inspect.isclass(value):
        return [f".. autoclass:: {address}", "   :members:", ""]
    if inspect.isroutine(value):
        return [f".. autofunction:: {address}", ""]
    return [f"``{address}``: a constant ({type(value).__name__}).", ""]


def page() -> str:
    """The whole page as Markdown."""
    import tiltmeter

    lines = [
        "# Functions",
        "",
        "Every public name, by the address under which it is used: `import tiltmeter as tm`.",
        "",
    ]
    seen: dict[int, str] = {}
    for address, room in rooms(tiltmeter, "tiltmeter"):
        title = address.replace("tiltmeter", "tm", 1)
        lines += [f"## {title}", "", (inspect.getdoc(room) or "").splitlines()[0], "", "```{eval-rst}"]
        for name in sorted(room.__all__, key=str.lower):
            value = getattr(room, name)
            if inspect.ismodule(value) or name == "__version__":
                continue
            if id(value) in seen and callable(value):
                lines += [f"``{title}.{name}`` is ``{seen[id(value)]}``.", ""]
                continue
            seen[id(value)] = f"{title}.{name}"
            lines += directive(f"{address}.{name}", value)
        lines += ["```", ""]
    return "\n".join(lines)


def _made(_: Sphinx, name: str, source: list[str]) -> None:
    if name == PAGE:
        source[0] = page()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _made)
    return {"parallel_read_safe": True}
