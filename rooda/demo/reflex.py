"""Answers the calls of `rooda reflex` as the demo agent: writes an outline, then adds a section for each failed rule.

To show how the loop works, the first outline lacks the section of one rule and all sections of phase B.
"""

import json
import re

_ID = r"\b[ab]\.[a-z0-9_-]+\.[a-z0-9_-]+"


def answer(kind: str, prompt: str) -> str | None:
    """Return the answer for a phase; None for an unknown phase."""
    make = _PHASES.get(kind)
    return make(prompt) if make else None


def part(prompt: str, heading: str) -> str:
    """Return the text below a heading of the prompt, up to the next heading of that level."""
    found = re.search(rf"^## {re.escape(heading)}\n\n(.*?)\n(?=## |\Z)", prompt, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def rest(prompt: str, heading: str) -> str:
    """Return the artifact below a heading of the prompt. The artifact may have headings; the constraints follow it."""
    return prompt.partition(f"\n## {heading}\n\n")[2].rpartition("\n## Constraints\n")[0].strip("\n")


def _ids(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(_ID, text)))


def _plan(prompt: str) -> str:
    rules = _ids(part(prompt, "Active rules"))
    third = max(1, -(-len(rules) // 3))
    groups = [rules[start : start + third] for start in range(0, len(rules), third)]
    steps = [f"Give {', '.join(group)} a section" for group in groups]
    while len(steps) < 3:
        steps.append(f"Read {rules[0] if rules else 'the text'} once more")
    return json.dumps({"plan": steps[:5]})


def _produce(prompt: str) -> str:
    """Return the previous artifact. Without one, write a section for each planned rule of phase A but the first."""
    if "\n## Previous artifact\n" in prompt:
        return rest(prompt, "Previous artifact")
    wanted = [name for name in _ids(part(prompt, "Plan")) if name.startswith("a.")]
    title = " ".join(part(prompt, "Task").split())[:60]
    return "\n\n".join([f"# {title}", *(_section(name) for name in wanted[1:])])


def _section(name: str) -> str:
    return f"## {name}\n\nHere a real agent would write what the rule {name} asks for."


def _prepare(prompt: str) -> str:
    checks = [
        {"rule_id": name, "type": "content", "search": f"^## {re.escape(name)}$", "expected": f"a section {name}"}
        for name in _ids(part(prompt, "Active rules"))
    ]
    return json.dumps({"checks": checks})


def _critique(prompt: str) -> str:
    issues = [
        {
            "rule_id": name,
            "problem": f"There is no section {name}",
            "fix_instruction": f"Add a section {name}",
            "expected_effect": f"The rule {name} holds",
        }
        for name in _ids(part(prompt, "Failed and warning rules"))[:5]
    ]
    return json.dumps({"issues": issues})


def _refine(prompt: str) -> str:
    missing = _ids(part(prompt, "Issues"))
    return "\n\n".join([rest(prompt, "Artifact"), *(_section(name) for name in missing)])


def _draft(prompt: str) -> str:
    """Return a check for each rule of a template."""
    checks = {name: f"There is a section {name}" for name in _ids(part(prompt, "Rules"))}
    return json.dumps({"ideal_result": "Each rule has a section", "checks": checks})


_PHASES = {
    "draft": _draft,
    "plan": _plan,
    "produce": _produce,
    "prepare": _prepare,
    "critique": _critique,
    "refine": _refine,
}
