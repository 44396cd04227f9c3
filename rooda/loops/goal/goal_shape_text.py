"""A plan as the text of SHAPE.md, in the form that `goal_shape.read` reads back."""

from rooda.loops.goal.goal_types import Criterion
from rooda.loops.goal.plan import Plan

HEAD = "| Criterion | Verification Type | Command/Method |\n|---|---|---|"


def text(plan: Plan, total: int) -> str:
    """Criteria, what must not be, how each is verified, and when it is over."""
    rows = [f"| {_cell(each.name)} | {each.verification} | {_method(each)} |" for each in plan.criteria]
    entries = [f'  - "{each.text}"' + (f" (violated_if: `{each.violated_if}`)" if each.violated_if else "")
               for each in plan.must_not]  # fmt: skip
    parts = [
        ("# Shape", f"Spec Score: {total}/10"),
        ("## Implementation Criteria", _list("criteria", list(map(_item, plan.criteria)))),
        ("## Must-NOT Constraints", _list("mustNot", entries)),
        ("## Verification Plan", "\n".join([HEAD, *rows])),
        ("## Exit Gate", "All criteria met, none by assumption, no mustNot true."),
    ]
    return "\n\n".join(f"{title}\n\n{body}" for title, body in parts) + "\n"


def _list(name: str, rows: list[str]) -> str:
    return "\n".join([f"{name}:", *rows])


def _item(criterion: Criterion) -> str:
    """The name, and below it what the table has no place for."""
    pattern = f"\n    expect: {criterion.expect}" if criterion.expect else ""
    return f'  - "{criterion.name}"{pattern}' + ("\n    holdout: true" if criterion.holdout else "")


def _method(criterion: Criterion) -> str:
    return f"`{_cell(criterion.command)}`" if criterion.command else criterion.note


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
