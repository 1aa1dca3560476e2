"""Everything that measures, and what was measured: `python -m c128a.bench`, and the records in data/."""
