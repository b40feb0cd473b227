"""Formulas as MathML, which browsers draw by themselves: the built pages need no script and no network."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _visit(display: str):
    def visit(self, node: nodes.Element) -> None:
        formula = convert(node.astext(), display=display)
        self.body.append(f"<p>{formula}</p>" if display == "block" else formula)
        raise nodes.SkipNode

    return visit


def setup(app: Sphinx) -> dict[str, bool]:
    app.registry.html_inline_math_renderers["mathml"] = (_visit("inline"), None)
    app.registry.html_block_math_renderers["mathml"] = (_visit("block"), None)
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
