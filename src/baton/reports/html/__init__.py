"""The HTML report: one file that opens from disk and makes no network requests."""

from baton.plugins import Entry

from .page import write_html

REPORT = Entry("html", write_html, "one page that opens from disk, with every trace")
