"""Classifies the error message of an agent CLI, by HTTP status and codes, else by its wording. Pure.

The patterns are tried in the same order for all CLIs: a full context, codes, a throttle that ends within minutes,
money, a usage limit, and last the general words for a busy service.
"""

import re
from collections.abc import Iterator
from enum import Enum


class Kind(Enum):
    """The kind of error that a message reports."""

    CONTEXT = "context"  # the prompt or the conversation is too long for the model
    DENIED = "denied"  # a tool that the agent needed was denied
    THROTTLE = "throttle"  # the same call succeeds seconds or minutes later
    MONEY = "money"  # nothing works until somebody pays
    LIMIT = "limit"  # a usage limit that resets at some time
    LOGIN = "login"
    CONFIG = "config"  # the command, an option or the model is wrong
    REQUEST = "request"  # the service refused this request, but may accept the next one
    SERVICE = "service"  # an error of the service, or of the network
    UNKNOWN = "unknown"


LONGEST = 8_000  # characters of a message that are searched
_CONTEXT = re.compile(
    r"prompt (?:is |as )?too long|context[_ ](?:window|length)|maximum context|contextoverflow"
    r"|input (?:token count|exceeds)|too many tokens(?! per)"
    r"|compaction (?:is )?(?:exhausted|blocked|cancelled)|context limit (?:still )?exceeded"
    r"|exceeds? (?:the )?(?:model'?s? )?context",
    re.I,
)
_DENIED = re.compile(r"insufficient permission to proceed", re.I)
_CODES = {
    Kind.MONEY: re.compile(
        r"\b(?:usage_not_included|organization_spend_limit_exceeded|workspace_\w*credits_depleted"
        r"|exceeded_current_quota_error|insufficient_(?:quota|credits?|funds|balance)|creditsExhausted|credits_exhausted"
        r"|billing_(?:hard_limit_reached|not_active)|payment_required)\b"
    ),
    Kind.LIMIT: re.compile(
        r"\b(?:usage_limit_(?:reached|exceeded)|workspace_\w*usage_limit_reached|\w*UsageLimitError|QUOTA_EXHAUSTED)\b"
    ),
    Kind.THROTTLE: re.compile(r"\b(?:overloaded_error|RATE_LIMIT_EXCEEDED|engine_overloaded_error)\b"),
}
_PER_MINUTE = r"per[ _-]?(?:min(?:ute)?|sec(?:ond)?)(?![a-rt-z])|\b(?:[rti]|it|ot)pm\b|/min\b"
_THROTTLE = re.compile(
    rf"{_PER_MINUTE}|temporarily limiting|not your usage limit|high concurrency|concurren(?:t|cy) (?:request|limit)"
    r"|too many concurrent|overloaded",
    re.I,
)
_PAYING = r"(?:credits?|funds|balance|tokens? balance)"
_MONEY = re.compile(
    r"\b(?:out of|no(?: more| remaining)?|zero|(?<![\d.,])0|insufficient|(?:not|n.t have) enough"
    r"|used (?:up )?all (?:of )?(?:your|the))"
    rf" (?:[\w-]+ ){{0,3}}?{_PAYING}\b"
    rf"|\b{_PAYING} (?:(?:is|are|has|have|was|were|been) )*(?:too low|depleted|exhausted|insufficient|used up|empty"
    r"|negative|run out|ran out|spent|not enough|below)"
    r"|\b(?:low|negative|zero) (?:[\w-]+ )?balance"
    r"|\b(?:ran|run|running) out of (?:[\w-]+ ){0,3}(?:credits?|funds|money)"
    r"|\b(?:add|buy|purchase|top up|recharge)(?: more| additional| your| extra)* (?:[\w-]+ )?(?:credits?|funds|balance)"
    r"|credit limit|credit balance|insufficient.?(?:quota|credit|fund|balance)"
    r"|spend(?:ing)?[ -](?:cap|limit)|(?:pooled|monthly|organi[sz]ation'?s?|team'?s?|your) budget|budget (?:\w+ ){0,3}"
    r"(?:exceeded|exhausted|reached|used up|spent)|usage (?:is |has been )?paused|usage quota"
    r"|quota (?:is |has been |was )?(?:exhausted|depleted|used up)|exhausted your (?:\w+ )?(?:quota|budget)"
    r"|(?:have|has) no quota|no quota (?:left|available)"
    r"|exceeded your current quota|quota exceeded\. check your plan|check your plan"
    r"|upgrade (?:your|to an?|the|to) (?:[\w-]+ )*?to continue"
    r"|api[- ]?key\b.{0,20}\bquota\b|run out of quota|card (?:was |has been )?declined|account is in arrears"
    r"|(?:trial|subscription) (?:has |is )?(?:expired|ended|over)|subscribe to continue"
    r"|update (?:your )?payment|payment (?:is )?required|billing(?! (?:cycle|period))|overdue",
    re.I,
)
_SPAN = (
    r"(?:daily|weekly|monthly|hourly|\d+[- ]?(?:h|hour|day|week|month)s?"
    r"|session|free|fair[- ]use|subscription|plan)"
)
_BOUND = r"(?:limit|quota|allowance|allotment|cap)"
_OTHER = (  # what else has a limit
    r"(?:rate|context|output|turns?|steps?|iterations?|tools?|size|maximum|max[-_]\w+|max turns?|length|time|timeout"
    r"|retry|retries|files?|memory|heap|stack|threads?|process(?:es)?|cgroup|lines?|recursion|subagents?|upload|body|depth)"
)
_LIMIT = re.compile(
    rf"\busage limits?\b(?!:)|\b{_SPAN}(?: [\w-]+){{0,3}} {_BOUND}s?\b"
    r"|\b(?:run out of|out of|used up|used) (?:all )?(?:[\w-]+ ){0,2}(?:messages|prompts|requests|generations)\b"
    r".{0,30}\b(?:today|this (?:day|week|month|period)|window)\b"
    rf"|\b(?:hit|reached|exceeded|exhausted|used up) (?:your|the|its|their|this) (?!(?:\S+ ){{0,3}}?{_OTHER}\b)"
    rf"(?:[\w./'-]+ ){{0,5}}?{_BOUND}s?\b"
    rf"|(?:^|[^\w\s] ?|\b(?!{_OTHER} )[\w'./-]+ )\b{_BOUND} (?:has been |was |is )?(?:reached|hit|used up)\b"
    rf"|\b(?:{_BOUND}|usage) (?:will )?(?:resets?|renews?|refresh(?:es)?)\b"
    r"|\bout of (?:[\w-]+ )?usage\b|per[ _-]?day|\b[rt]pd\b|\bbilling (?:cycle|period)|\bpremium requests?\b"
    r"|\b(?:again|retry|resets?|wait|back|available) (?:in |for |after )?(?:about |~ ?)?\d+(?:\.\d+)? ?"
    r"(?:h|hours?|hrs?|d|days?)\b",
    re.I,
)
_DAILY = re.compile(r"\bdaily\b|per[ _-]?day|\b[rt]pd\b", re.I)
_RATE = re.compile(r"\brate[- _]?limit", re.I)
_LONG = re.compile(rf"\b\d+(?:\.\d+)? ?(?:hours?|hrs?|h|days?|d)\b|\d+h\d+m|\b{_SPAN}\b", re.I)
# A sentence that warns of a limit, explains one, or counts what is left: the call itself was not refused.
_WARNING = re.compile(
    r"approaching|nearing|\bclose to\b|\bnear(?:ly)? (?:your|the)\b|\balmost\b|running low|getting low"
    r"|\bnearly (?:reached|used)|\bexpected\b|\bincludes? \d|\bfaster\b"
    r"|(?<!\d)\d{1,2}(?:\.\d+)? ?%"
    r"|^(?!.*\b(?:no|zero|0) (?:[\w-]+ ){0,3}(?:remaining|left)\b)"
    r".*(?:\bremaining\b|\bleft (?:this|in|until|before|for|of)\b)"
    r"|\bwill (?:soon )?(?:hit|reach|exceed|run out)|\babout to (?:hit|reach)|\bsoon (?:hit|reach)"
    r"|\b(?:if|when|once|before|until|unless|whenever|after|as) (?:you|the|your|a|an|this|it)\b.{0,40}"
    r"\b(?:hit|reach|exceed|run out|limit)|\bto avoid|counts? (?:toward|against)"
    r"|\blimits? (?:apply|applies)\b|\bincludes? .{0,40}\blimit"
    r"|\blimits? (?:was |were |has been |have been )(?:reset|raised|increased|lifted)"
    r"|\blimit reset[.!]?$|(?<!\d)(\d+) of (?!\1\b)\d+ .{0,40}\bused\b|\b(?:may|might|could) (?:hit|reach)",
    re.I,
)
_ANY_LIMIT = re.compile(r"limit|quota|credit|usage|request|budget|allowance", re.I)
_LOGIN = re.compile(
    r"not logged in|please run /login|(?:invalid|incorrect) (?:x-)?api.key|missing environment variable|authentication"
    r"|unauthori[sz]ed|set an auth method|api key (?:not|is|must)|no api key"
    r"|must (?:specify|set) .{0,200}api_key|auth method|no auth type",
    re.I,
)
_CONFIG = re.compile(
    r"does not exist|provider not provided|model (?:\S+ )?(?:not found|is not configured|not available)"
    r"|not found for api version|selected model"
    r"|unknown (?:option|argument|model|flag)"
    r"|unexpected argument|unrecognized|invalid model|(?:not |un)supported|no such (?:option|file)|not trusted"
    r"|extra inputs are not permitted|invalid (?:value|parameter)",
    re.I,
)
_BUSY = re.compile(
    r"rate.?limit|too many requests|resource.?(?:has been )?exhausted|high demand|at capacity|try again later|temporar"
    r"|throttl|server is busy|slow down",
    re.I,
)
_NETWORK = re.compile(
    r"connection|could not connect|network|timed? ?out|disconnected|terminated|econn|fetch failed|stream", re.I
)


def kind_of(message: str, code: str = "", status: int | None = None, seconds: float | None = None) -> Kind:
    """Classify an error. `code`: the CLI's own name for it; `seconds`: the wait that the message names, if any."""
    message = message[:LONGEST]
    words = f"{message} {code}"
    if _CONTEXT.search(words):
        return Kind.CONTEXT
    if _DENIED.search(words):
        return Kind.DENIED
    if found := account_kind(message, code, status, seconds):
        return found
    return _of_service(words, status)


def account_kind(message: str, code: str = "", status: int | None = None, seconds: float | None = None) -> Kind | None:
    """Return THROTTLE, MONEY or LIMIT if the message says that the account can't be used now, else None."""
    telling = " ".join(part for part in _sentences(message) if not _WARNING.search(part))
    words = f"{telling} {code}"
    for kind, pattern in _CODES.items():
        if pattern.search(words):
            return Kind.LIMIT if kind is Kind.MONEY and seconds is not None else kind
    if _THROTTLE.search(words):
        return Kind.THROTTLE
    if _DAILY.search(telling) and _LIMIT.search(telling):
        return Kind.LIMIT
    if status == 402 and _LIMIT.search(telling) and not _MONEY.search(telling):
        return Kind.LIMIT
    if status == 402 or _MONEY.search(telling):
        return _of_money(status, seconds)
    if _LIMIT.search(telling) and not (_RATE.search(telling) and not _is_long(telling, seconds)):
        is_short = status == 429 and seconds is not None and seconds < 600 and not _LONG.search(telling)
        return Kind.THROTTLE if is_short else Kind.LIMIT
    return None


def _of_money(status: int | None, seconds: float | None) -> Kind:
    """Classify a message about money or a quota.

    MONEY if it names no wait; THROTTLE if the wait is short and the status is 429; else LIMIT.
    """
    if seconds is None:
        return Kind.MONEY
    return Kind.THROTTLE if status == 429 and seconds < 600 else Kind.LIMIT


def _is_long(text: str, seconds: float | None) -> bool:
    return (seconds or 0.0) >= 3600 or bool(_LONG.search(text))


def only_warns(text: str) -> bool:
    """True if the text warns of a limit without saying that a call was refused."""
    return all(_WARNING.search(part) for part in _sentences(text)) and bool(_ANY_LIMIT.search(text))


def _sentences(text: str) -> Iterator[str]:
    return (part for part in re.split(r"(?<=[.!?;·|])\s+|\n+", text) if part.strip())


def _of_service(words: str, status: int | None) -> Kind:
    if status in (429, 503, 529):
        return Kind.THROTTLE
    if status in (401, 403):
        return Kind.LOGIN
    if status != 500 and _BUSY.search(words):
        return Kind.THROTTLE
    if status is not None and status >= 500:
        return Kind.SERVICE
    if _LOGIN.search(words):
        return Kind.LOGIN
    if status == 404 or _CONFIG.search(words):
        return Kind.CONFIG
    if status == 400:
        return Kind.REQUEST
    return Kind.SERVICE if _NETWORK.search(words) else Kind.UNKNOWN
