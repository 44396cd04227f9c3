"""Is the agent's program there, before anything is paid for?"""

import os

from rooda.errors import AgentMissing
from rooda.model import Agent
from rooda.world.agents import command


def require(agent: Agent, workspace: str) -> str:
    """The program's path; AgentMissing with what to do when there is none."""
    program = command.argv(agent, "")[0]
    hint = "Install it, correct the command, or choose another agent with --agent or --ai-cmd."
    if os.sep in program:
        found = [os.path.join(workspace, program)]
    else:
        places = agent.env.get("PATH", os.environ.get("PATH", os.defpath)).split(os.pathsep)
        found = [os.path.join(place, program) for place in places if place]
    files = [path for path in found if os.path.isfile(path)]
    for path in files:
        if os.access(path, os.X_OK):
            return path
    if files:
        raise AgentMissing(f"AI command is not executable: {files[0]}", f"Make it so: chmod +x {files[0]}")
    raise AgentMissing(f"AI command binary not found: {program}", hint)
