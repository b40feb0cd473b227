"""The laboratory: each experiment repeats a published finding and reports, claim by claim, whether it holds."""

__version__ = "0.1.0"
