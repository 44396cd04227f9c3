"""`--draft`: one agent call that proposes rules for a task."""

from rooda.agents.outcome import in_words
from rooda.agents.records import Call
from rooda.base import files
from rooda.base.dirs import shipped
from rooda.errors import Interrupted, RoodaError
from rooda.loops.reflex import drafting
from rooda.loops.reflex.drafting import Drafted
from rooda.loops.reflex.prepare import Ready
from rooda.processes.signals import Signals
from rooda.run.placeholders import substitute
from rooda.run.prompts import Measure
from rooda.run.session import Session, Tenant
from rooda.run.setup import Setup
from rooda.settings.where import Where


def draft(task: str, here: Where, made: Ready) -> Drafted:
    setup, agent = made.setup, made.agent
    text = substitute(files.text(shipped("prompts", "reflex/draft.md")), {"task": task}, "builtin:reflex/draft.md")
    with Signals() as signals:
        tenant = Tenant("reflex", "draft", Setup(agent, bounds=setup.bounds, further=setup.further))
        session = Session(here.workspace, tenant, signals, made.screen.show, made.screen.tick(), None)
        try:
            prompt = session.prompt(lambda: text, "draft", Measure("", setup.token_budget))
            reply = session.ask(Call("draft", 1, agent, prompt, setup.bounds, apart=True))
            if reply.ended == "interrupted":
                raise Interrupted(session.signalled())
        finally:
            made.screen.close()
            session.close()
    if not reply.ok:
        why = in_words(reply, {"": "The agent could not draft the rules: {reason}"})
        raise RoodaError(why, "Use --template or --rules instead.")
    return drafting.from_agent(reply.said.text)
