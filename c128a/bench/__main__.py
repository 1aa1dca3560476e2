"""`python -m c128a.bench`: see runner.py.

Nothing else is here, because a spawned process does not import the __main__ of its parent's package.
"""

import sys

from c128a.bench.runner import main

if __name__ == "__main__":
    sys.exit(main())
