"""Report: one HTML page that opens offline, from sentences, tables and pictures."""

from tiltmeter.report.page import Section, Table, write_page
from tiltmeter.report.runs import report

__all__ = ["Section", "Table", "report", "write_page"]
