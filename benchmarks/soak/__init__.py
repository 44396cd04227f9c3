"""A loop of each kind, a list of tasks and the page at once, with kills, limits and failures: `python -m benchmarks.soak`."""
