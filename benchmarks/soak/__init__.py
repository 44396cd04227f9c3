"""Loops, tasks and the page at once, with kills, limits and failures: `python -m benchmarks.soak`."""
