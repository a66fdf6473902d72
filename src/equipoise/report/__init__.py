"""One self-contained HTML file: verdict, findings, charts, tables, and questions asked in the page.

Nothing heavy is imported here: templates and charts are loaded when a report is made.
"""

from equipoise.report.make import Report, report

__all__ = ["Report", "report"]
