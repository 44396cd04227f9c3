"""Prints how much of each collection of inputs is judged right: `python -m tests.kit.tables`."""

import importlib

COLLECTIONS = {
    "Gates in AGENTS.md: sections": "tests.run.test_gate_sections",
    "Gates in AGENTS.md: lines": "tests.run.test_gates_md",
    "Refusals of services, by outcome, and mentions of limits": "tests.agents.test_error_texts",
    "Projects": "tests.cli.test_init",
    "Lists of tasks": "tests.run.test_task_lists",
}


def main() -> None:
    for title, module in COLLECTIONS.items():
        print(title)
        importlib.import_module(module).main()
        print()


if __name__ == "__main__":
    main()
