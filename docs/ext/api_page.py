"""The reference, made from the public names: a page for each function and class, grouped by topic, and a page of all.

The pages are written to `docs/api` when the site is built. A parameter is described once, under `Args:` in a docstring;
a class also has the descriptions of the class that it inherits the parameter from.
"""

import enum
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

PAGE = "api"
FOLDER = Path(__file__).parents[1] / "api"
#: Topic -> title, and the packages and modules of the library that belong to it. The first that holds a name counts.
TOPICS = {
    "data": ("Data and questions", ("data", "question")),
    "theory": ("Theory and simulation", ("theory", "schedules")),
    "training": ("Training", ("training", "recipe", "losses", "modules")),
    "forecast": ("Forecast and advice", ("forecast", "preview", "advice")),
    "interventions": ("Interventions", ("interventions",)),
    "measures": ("Measures", ("measures",)),
    "leaders": ("Who leads, and fairness", ("leaders", "fairness", "criteria", "discover")),
    "plot": ("Pictures", ("plot",)),
    "lab": ("The laboratory", ("tiltmeter_lab",)),
    "runs": ("Runs, reports, files and studies", ("record", "report", "export", "predictions")),
}
ARGUMENT = re.compile(r"^ {4}(\*{0,2}\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def rooms(package: ModuleType, address: str) -> Iterator[tuple[str, ModuleType]]:
    """The package and every public module in it, with their public addresses."""
    yield address, package
    for name in sorted(package.__all__):
        value = getattr(package, name)
        if inspect.ismodule(value):
            yield from rooms(value, f"{address}.{name}")


def public_names() -> dict[str, Any]:
    """Address -> function, class or constant; what has two addresses is under the shorter path, the first."""
    import tiltmeter
    import tiltmeter_lab

    names: dict[str, Any] = {}
    seen: set[int] = set()
    for address, room in [*rooms(tiltmeter, "tm"), *rooms(tiltmeter_lab, "lab")]:
        for name in sorted(room.__all__, key=str.lower):
            value = getattr(room, name)
            if not (inspect.ismodule(value) or name == "__version__" or (callable(value) and id(value) in seen)):
                seen.add(id(value))
                names[f"{address}.{name}"] = value
    return names


def documented(value: Any) -> bool:
    """Whether it has a page of its own: functions, classes and objects of ours that are called do."""
    ours = type(value).__module__.startswith(("tiltmeter.", "tiltmeter_lab.")) and callable(value)
    return inspect.isclass(value) or inspect.isroutine(value) or ours


def parameters(value: Any) -> list[str]:
    """The parameters of a function or of a constructor; protocols and enumerations are never constructed by users."""
    if inspect.isclass(value) and (issubclass(value, enum.Enum) or getattr(value, "_is_protocol", False)):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(each.kind, "") + name for name, each in inspect.signature(value).parameters.items()]


def described(value: Any) -> dict[str, str]:
    """Parameter -> description, from the docstring and, for a class, from those that it inherits from."""
    texts: dict[str, str] = {}
    for owner in reversed(value.__mro__) if inspect.isclass(value) else [value]:
        _, _, arguments = inspect.cleandoc(vars(owner).get("__doc__", owner.__doc__) or "").partition("\nArgs:\n")
        texts |= {name: " ".join(text.split()) for name, text in ARGUMENT.findall(arguments)}
    return {name: texts[name] for name in parameters(value) if name in texts}


def topic_of(value: Any) -> str:
    """The topic of a function or class, by the package that defines it."""
    house, package, *_ = inspect.unwrap(value).__module__.split(".")
    package = house if house == "tiltmeter_lab" else package
    return next((topic for topic, (_, packages) in TOPICS.items() if package in packages), "runs")


def file_names(names: dict[str, Any]) -> dict[str, str]:
    """Address -> name of its page; two that differ only in capitals must not be the same file on some machines."""
    files: dict[str, str] = {}
    for address in names:
        taken = address.lower() in {file.lower() for file in files.values()}
        files[address] = f"{address}-{type(names[address]).__name__}" if taken else address
    return files


def summary(value: Any) -> str:
    """The first paragraph of a docstring, for a cell of a table."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).replace("|", "\\|").replace("$", "\\$")


def full_address(address: str) -> str:
    """The address with the full name of its package, as Sphinx imports it."""
    alias, _, rest = address.partition(".")
    return f"{ {'tm': 'tiltmeter', 'lab': 'tiltmeter_lab'}[alias] }.{rest}"


def object_page(address: str, value: Any, names: list[str], guides: list[str]) -> str:
    """The page of one function or class, with links to related names and to pages of the guide."""
    kind = "class" if inspect.isclass(value) else "function"
    directive = [f".. auto{kind}:: {full_address(address)}"]
    options = ["   :members:"] if kind == "class" else []
    also = ["```{seealso}", *(" · ".join(links) + "\n" for links in (names, guides) if links), "```"]
    return "\n".join([f"# {address}", "", "```{eval-rst}", *directive, *options, "```", "", *also, ""])


def uses(names: dict[str, Any]) -> Callable[[str], Counter[str]]:
    """A function that counts the public names in a text: `tm.forecast`, and in backticks `Rehearsal` if one is."""
    own: dict[str, list[str]] = {}
    for address in names:
        own.setdefault(short(address), []).append(address)
    single = {name: addresses[0] for name, addresses in own.items() if len(addresses) == 1}

    def count(text: str) -> Counter[str]:
        words = re.findall(r"\b(?:tm|lab)(?:\.\w+)+", text)
        words += [single[word] for word in re.findall(r"`([A-Za-z_]+)[`(]", text) if word in single]
        return Counter(word for word in words if word in names)

    return count


def guides(names: dict[str, Any]) -> dict[str, Counter[str]]:
    """Link to a page of the guide -> how often it uses each name."""
    count, pages = uses(names), {}
    for tree in ("tutorials/*.md", "howto/*.md", "*.md", "lab/*.md"):
        for page in sorted(FOLDER.parent.glob(tree)):
            text = page.read_text(encoding="utf-8")
            if title := re.search(r"^# (.+)$", text, re.MULTILINE):
                pages[f"[{title[1]}](../{page.relative_to(FOLDER.parent).as_posix()})"] = count(text)
    return pages


def related(names: dict[str, Any], used: dict[str, Counter[str]]) -> dict[str, list[str]]:
    """Address -> the names nearest to it, by docstrings that mention it, by source and by pages that use both."""
    count = uses(names)
    mentions = {address: set(count(inspect.getdoc(value) or "")) for address, value in names.items()}
    fame = Counter(name for mentioned in mentions.values() for name in mentioned)
    modules = {address: inspect.unwrap(value).__module__ for address, value in names.items()}
    pages = {address: {page for page, words in used.items() if address in words} for address in names}

    def nearness(address: str, other: str) -> float:
        mentioned = (other in mentions[address]) * (2 + 8 / fame[other]) if fame[other] else 0.0
        mentioned += (address in mentions[other]) * (1 + 8 / fame[address]) if fame[address] else 0.0
        here, there = modules[address], modules[other]
        source = (here == there) + (here.rpartition(".")[0] == there.rpartition(".")[0])
        return (
            mentioned + 2 * source + 4 * len(pages[address] & pages[other]) / (1 + len(pages[address] | pages[other]))
        )

    def nearest(address: str) -> list[str]:
        others = sorted(set(names) - {address}, key=lambda other: (-nearness(address, other), other.count("."), other))
        return others[:6]

    return {address: nearest(address) for address in names}


def short(address: str) -> str:
    """The name as the side bar shows it, under the title of its topic."""
    return address.rsplit(".", 1)[1]


def topic_page(topic: str, members: dict[str, Any], files: dict[str, str]) -> str:
    """A table of the names of a topic."""
    lines = [f"# {TOPICS[topic][0]}", "", "| name | what it is |", "|---|---|"]
    lines += [f"| [`{address}`]({files[address]}.md) | {summary(value)} |" for address, value in members.items()]
    lines += ["", "```{toctree}", ":hidden:", "", *(f"{short(address)} <{files[address]}>" for address in members)]
    lines += ["```", ""]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Name of a file -> Markdown: one for each topic and one for each function and class."""
    names = {address: value for address, value in public_names().items() if documented(value)}
    files = file_names(names)
    used = guides(names)
    near = related(names, used)
    texts = {}
    for address, value in names.items():
        pages = sorted((page for page in used if address in used[page]), key=lambda page: -used[page][address])
        links = [f"[`{other}`]({files[other]}.md)" for other in near[address]]
        texts[files[address]] = object_page(address, value, links, pages[:3])
    for topic in TOPICS:
        texts[topic] = topic_page(topic, {a: v for a, v in names.items() if topic_of(v) == topic}, files)
    return texts


def all_names() -> str:
    """The page of all names: topics, their names, and the constants."""
    names = public_names()
    files = file_names({address: value for address, value in names.items() if documented(value)})
    lines = [
        "# Functions",
        "",
        "Every public name, by topic. They are used as `import tiltmeter as tm` gives them.",
        "",
    ]
    for topic, (title, _) in TOPICS.items():
        links = [f"[`{a}`](api/{files[a]}.md)" for a, v in names.items() if documented(v) and topic_of(v) == topic]
        lines += [f"## [{title}](api/{topic}.md)", "", " · ".join(links), ""]
    constants = [f"`{address}` ({type(v).__name__})" for address, v in names.items() if not documented(v)]
    lines += ["## Constants", "", ", ".join(constants) + ".", ""]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *(f"api/{topic}" for topic in TOPICS), "```", ""])


def write_changed(folder: Path, texts: dict[str, str]) -> None:
    """Write what has changed and remove the rest, so that only that is built again."""
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.md"):
        if file.stem not in texts:
            file.unlink()
    for name, text in texts.items():
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def _write(_: Sphinx) -> None:
    write_changed(FOLDER, pages())


def linker() -> Callable[[str, set[str]], str]:
    """A function that turns public names in backticks into links, but for those that are parameters."""
    targets = {address: address.replace("tm", "tiltmeter", 1) for address, v in public_names().items() if documented(v)}
    unique: dict[str, list[str]] = {}
    for address, target in targets.items():
        unique.setdefault(short(address), []).append(target)
    targets |= {name: found[0] for name, found in unique.items() if len(found) == 1}

    def linked(line: str, taken: set[str]) -> str:
        def link(match: re.Match[str]) -> str:
            target = None if match[1] in taken else targets.get(match[1])
            return f":py:obj:`{match[1]} <{target}>`" if target else match[0]

        return line if line.lstrip().startswith((">>>", "...")) else re.sub(r"(?<!`)`([\w.]+)`(?!`)", link, line)

    return linked


def _docstring(_app: Sphinx, what: str, name: str, value: Any, _options: Any, lines: list[str]) -> None:
    """Add the descriptions that a class inherits, and link the public names that a docstring mentions."""
    taken = {name.rsplit(".", 1)[-1]}
    if what in ("class", "function"):
        texts = described(value)
        taken |= {each.lstrip("*") for each in texts}
        stated = {match[0] for match in ARGUMENT.findall("\n".join(lines).partition("\nArgs:\n")[2])}
        inherited = [f"    {each}: {text}" for each, text in texts.items() if each not in stated]
        if inherited:
            while lines and not lines[-1]:
                lines.pop()
            lines += [*([] if "Args:" in lines else ["", "Args:"]), *inherited, ""]
    lines[:] = [LINKED[0](line, taken) for line in lines]


LINKED: list[Callable[[str, set[str]], str]] = []


def _made(_: Sphinx, name: str, source: list[str]) -> None:
    if name == PAGE:
        source[0] = all_names()


def setup(app: Sphinx) -> dict[str, bool]:
    LINKED[:] = [linker()]
    app.connect("builder-inited", _write)
    app.connect("source-read", _made)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon reads the descriptions
    return {"parallel_read_safe": True}
