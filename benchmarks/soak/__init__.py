"""Four loops of different kinds side by side, with kills, limits and failures: `python -m benchmarks.soak`."""
