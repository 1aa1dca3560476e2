"""`python -m c128a.deployment`: the check for a terminal or for CI."""

from c128a.deployment.cli import main

raise SystemExit(main())
