"""Error responses by API family, from which the CLIs make their messages."""

from rooda.agentkit.server.scenario import Json

OPENAI_CODE: dict[tuple[str, str], Json] = {
    ("responses", "auth"): {"code": "invalid_api_key", "type": "invalid_request_error"},
    ("chat", "auth"): {"code": "invalid_api_key", "type": "invalid_request_error"},
}
OVERFLOW: dict[str, Json] = {
    "anthropic": {"error": 400, "message": "prompt is too long: 212345 tokens > 200000 maximum"},
    "responses": {
        "text": "x",
        "stream_error": {
            "code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        },
    },
    "chat": {
        "error": 400,
        "code": "context_length_exceeded",
        "message": "This model's maximum context length is 128000 tokens. Your messages resulted in 150000 tokens.",
    },
    "gemini": {
        "error": 400,
        "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    },
}
UNKNOWN_MODEL: dict[str, Json] = {
    "anthropic": {"error": 404, "message": "model: no-such-model"},
    "responses": {
        "error": 400,
        "code": "model_not_found",
        "message": "The requested model 'no-such-model' does not exist.",
    },
    "chat": {
        "error": 404,
        "code": "model_not_found",
        "message": "The model `no-such-model` does not exist or you do not have access to it.",
    },
    "gemini": {"error": 404, "message": "models/no-such-model is not found for API version v1beta."},
}
QUOTA = "You exceeded your current quota, please check your plan and billing details."
NO_CREDIT: dict[str, Json] = {
    "anthropic": {
        "error": 400,
        "message": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
    },
    "responses": {"error": 429, "type": "insufficient_quota", "message": QUOTA},
    "chat": {"error": 429, "type": "insufficient_quota", "message": QUOTA},
    "gemini": {"error": 429, "message": "Your prepayment credits are depleted."},
}
STREAM_ERROR: dict[str, Json] = {
    "anthropic": {"type": "overloaded_error", "message": "Overloaded"},
    "responses": {"code": "server_is_overloaded", "message": "Our servers are currently overloaded."},
    "chat": {"type": "server_error", "message": "The server had an error."},
    "gemini": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"},
}
