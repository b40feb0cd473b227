"""Cell functions must be importable by other processes: their folder is on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
