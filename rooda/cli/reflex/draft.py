"""`--draft`: one agent call that proposes rules for a task."""

from rooda.cli.reflex import drafting
from rooda.cli.reflex.drafting import Drafted
from rooda.cli.reflex.ready import Ready
from rooda.cli.where import Where
from rooda.errors import Interrupted, RoodaError
from rooda.model import Call
from rooda.prompting.substitute import substitute
from rooda.world import files
from rooda.world.agents import final
from rooda.world.checks import Manner
from rooda.world.kept import Measure
from rooda.world.session import Session, Tenant
from rooda.world.shipped import shipped
from rooda.world.signals import Signals


def draft(task: str, here: Where, made: Ready) -> Drafted:
    setup, agent = made.setup, made.agent
    text = substitute(files.text(shipped("prompts", "reflex/draft.md")), {"task": task}, "builtin:reflex/draft.md")
    with Signals() as signals:
        manner = Manner(setup.kill_grace, setup.max_output_buffer, agent.keep_background)
        tenant = Tenant("reflex", "draft")
        session = Session(here.workspace, tenant, manner, signals, made.screen.show, made.screen.tick(), None)
        try:
            prompt = session.prompt(lambda: text, "draft", Measure("", setup.token_budget))
            call = Call("draft", 1, agent, prompt, setup.iteration_timeout, setup.idle_timeout, setup.kill_grace)
            reply = session.ask(call._replace(max_output_buffer=setup.max_output_buffer, apart=True))
            if reply.ended == "interrupted":
                raise Interrupted(session.signalled())
        finally:
            made.screen.close()
            session.close()
    if not reply.ok:
        why = reply.message or reply.note or f"exit code {reply.exit_code}"
        raise RoodaError(f"The agent could not draft the rules: {why}", "Use --template or --rules instead.")
    return drafting.from_agent(final.text(agent.output, reply.transcript))
