"""Defines the names of spans, attributes and metrics. Names that begin with gen_ai are defined nowhere else.

These names come from OpenTelemetry's semantic conventions for generative AI, version 1.44.0, still in development:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/
"""

SCOPE = "rooda"
SERVICE = "rooda"

OPERATION = "gen_ai.operation.name"
INVOKE_AGENT, INVOKE_WORKFLOW = "invoke_agent", "invoke_workflow"
WORKFLOW = "gen_ai.workflow.name"
AGENT = "gen_ai.agent.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
CONVERSATION = "gen_ai.conversation.id"
INPUT = "gen_ai.usage.input_tokens"  # including cached tokens
OUTPUT = "gen_ai.usage.output_tokens"
CACHED = "gen_ai.usage.cache_read.input_tokens"
WRITTEN = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"
ERROR = "error.type"

TOKEN_USAGE = "gen_ai.client.token.usage"
DURATION = "gen_ai.client.operation.duration"
COST_TOTAL = "rooda.cost"

RUN = "rooda.run"
SESSION = "rooda.session"
KIND = "rooda.loop.kind"
LOOP = "rooda.loop.name"
WORKSPACE = "rooda.workspace"
STATE = "rooda.state"
REASON = "rooda.reason"
EXIT_CODE = "rooda.exit_code"
ITERATIONS = "rooda.iterations"
ITERATION = "rooda.iteration"
OUTCOME = "rooda.outcome"
CALL = "rooda.call"
COST = "rooda.cost_dollars"
COST_SOURCE = "rooda.cost_source"
TURNS = "rooda.turns"
TOOLS = "rooda.tool_calls"
GATE = "rooda.gate.name"
VERDICT = "rooda.gate.verdict"
CUT_OFF = "rooda.cut_off"

# The providers, by the format of the CLI's output or by the beginning of the model's name.
PROVIDERS = {
    "claude": "anthropic",
    "codex": "openai",
    "gemini": "gcp.gemini",
    "gpt": "openai",
    "grok": "x_ai",
    "deepseek": "deepseek",
    "mistral": "mistral_ai",
    "devstral": "mistral_ai",
}


def provider(output: str, model: str, agent: str) -> str:
    """Return the provider of a call's model; the name of the agent if no provider is known."""
    of_model = next((value for name, value in PROVIDERS.items() if model.lower().startswith(name)), "")
    return of_model or PROVIDERS.get(output, "") or agent or "command"
