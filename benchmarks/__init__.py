"""What the project's figures are made with: `python -m benchmarks`. Standard library only."""
