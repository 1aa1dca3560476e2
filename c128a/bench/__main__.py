"""`python -m c128a.bench`: see runner.py, and profile.py for `python -m c128a.bench trace`.

Nothing else is here, because a spawned process does not import the __main__ of its parent's package.
"""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["trace"]:
        from c128a.bench.profile import main as trace

        sys.exit(trace(sys.argv[2:]))
    from c128a.bench.runner import main

    sys.exit(main())
