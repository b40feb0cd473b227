"""Report: one HTML page that opens offline, from sentences, tables and pictures."""

from tiltmeter.report.page import Section, Table, write_page

__all__ = ["Section", "Table", "write_page"]
