"""`python -m tiltmeter`."""

import sys

from tiltmeter.cli import main

if __name__ == "__main__":
    sys.exit(main())
