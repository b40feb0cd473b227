"""A folder of its own for every test of the command line, and one call of it."""

from command_line import in_a_folder, run  # noqa: F401
