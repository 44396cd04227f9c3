"""Questions of a goal's agent to the user: T-15 of the page on tasks."""

import json
from pathlib import Path

from tests.kit.goal import Goals, claim

QUESTION = "so:\n<question>SQLite or files?</question>\n"


def test_T_15_a_goal_is_parked_until_the_answer(g: Goals) -> None:
    """Exit 4 and `parked`, even if the agent claims the end; `answer` stores the answer, a resume has it."""
    hook = '\n[hooks]\nneeds_person = "echo asked >> \\"$FAKE/asked\\""\n'
    g.write("rooda.toml", g.read("rooda.toml") + hook)
    g.succeeds()
    g.side("step-1", "touch a.ok b.ok")
    g.out("step-1", QUESTION + claim(True))
    g.out("step-2", claim(True))
    asked = g.run("--iterations", "1")
    assert asked.code == 4 and "The agent asks: SQLite or files?" in asked.out and 'rooda answer goal "…"' in asked.out
    assert "<question>your question</question>" in g.calls[1].text
    found = json.loads(g.rooda("status", "--json").out)[0]
    assert (found["state"], found["next"]) == ("parked", 'rooda answer goal "…"')
    for words in (("goal", "continue"), ("resume", "goal"), ("resume",)):
        refused = g.rooda(*words)
        assert refused.code == 3 and "'goal' asks: SQLite or files?" in refused.err, refused
    assert g.rooda("answer", "goal", "Files.").out == "Go on: rooda goal continue\n"
    assert g.rooda("answer", "goal", "Again").code == 2
    done = g.go_on()
    assert done.code == 0 and g.kinds == ["plan", "step", "step"], done
    assert "You asked: SQLite or files? The answer: Files." in g.calls[2].text
    assert Path(g.fake, "asked").read_text() == "asked\n"


def test_T_15_a_goal_inside_another_run_does_not_ask(g: Goals) -> None:
    """Nobody could answer it there: the line has no meaning, and the prompt does not offer it."""
    g.succeeds()
    g.out("step-1", QUESTION + claim(False))
    done = g.run("--headless", env={"ROODA_RUN": "20260101T000000Z-flow-1"})
    assert done.code == 0 and not any("<question>" in call.text for call in g.calls), done
