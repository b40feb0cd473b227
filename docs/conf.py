"""Sphinx configuration: Markdown pages, formulas as MathML, nothing fetched from the network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "ext"))

from tiltmeter import __version__

project = "tiltmeter"
author = copyright = "The tiltmeter authors"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "explorable",
    "api_page",
    "evidence",
    "command_line",
    "outputs",
    "notebook_pages",
    "trees",
    "glossary_tips",
    "search_entries",
]
myst_enable_extensions = ["attrs_inline", "dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "ext", "_templates"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"tiltmeter {__version__}"
html_static_path = ["_static"]
html_copy_source = False
html_css_files = ["site.css"]
html_js_files = ["copy.js", "evidence.js"]
html_search_scorer = str(Path(__file__).parent / "ext" / "search_order.js")
html_theme_options = {
    "announcement": "Start, Tutorials, How-to, Understand, API, Evidence"
}  # _templates/page.html fills it
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
add_module_names = False
python_maximum_signature_line_length = 100
default_role = "code"
suppress_warnings = ["myst.xref_missing"]
