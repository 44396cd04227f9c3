#!/usr/bin/env bash
# Runs the loop without a terminal, writes the outputs and the summary, and exits as rooda did.
# The log, the events and the report are masked by rooda; transcripts are not, so they are not kept.
set -euo pipefail

folder=$(mktemp -d "$RUNNER_TEMP/rooda-XXXXXX")
cd -- "$INPUT_DIRECTORY"

words=()
read -ra words <<<"$INPUT_COMMAND"
[ -z "$INPUT_AGENT" ] || words+=(--agent "$INPUT_AGENT")
[ -z "$INPUT_ITERATIONS" ] || words+=(-n "$INPUT_ITERATIONS")
[ -z "$INPUT_MAX_COST" ] || words+=(--max-cost "$INPUT_MAX_COST")
while IFS= read -r word; do
    [ -z "$word" ] || words+=("$word")
done <<<"$INPUT_ARGUMENTS"
[ -z "$INPUT_TRUST" ] || export ROODA_TRUST=$INPUT_TRUST

newest() { # the newest run, as a line: ID, end, state, iterations, cost, cause
    rooda runs --json 2>/dev/null | python3 -c '
import json, sys
for run in json.load(sys.stdin)[:1]:
    facts = (run[key] for key in ("run", "last", "state", "iterations", "cost", "cause"))
    print("\t".join(" ".join(str("" if fact is None else fact).split()) or "-" for fact in facts))
' || true
}

before=$(newest)
# What an agent prints must not be a command to the runner.
token=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
echo "::stop-commands::$token"
mkfifo "$folder/pipe"
tee "$folder/rooda.log" <"$folder/pipe" &
log=$!
rooda "${words[@]}" </dev/null >"$folder/pipe" 2>&1 &
loop=$!
trap 'kill -TERM "$loop" 2>/dev/null || true' INT TERM # a cancelled job: rooda ends its agent and saves its state
code=0
wait "$loop" || code=$?
while kill -0 "$loop" 2>/dev/null; do # the wait was interrupted by the trap
    code=0
    wait "$loop" || code=$?
done
trap - INT TERM
wait "$log"
rm "$folder/pipe"
echo "::$token::"

after=$(newest)
[ "$after" != "$before" ] || after=
IFS=$'\t' read -r run _ state iterations cost cause <<<"$after" || true
if [ -n "$run" ]; then
    rooda events >"$folder/events.jsonl" || true
    rooda export "$run" -o "$folder/run.html" || true
fi
[ "${cost:-}" != - ] || cost=
[ "${iterations:-}" != - ] || iterations=
{
    echo "exit-code=$code"
    echo "status=${state:-}"
    echo "iterations=${iterations:-}"
    echo "cost=${cost:-}"
    echo "folder=$folder"
} >>"$GITHUB_OUTPUT"

case $code in
    0) meaning="ended as asked" ;;
    1) meaning="failed" ;;
    2) meaning="the command line or a setting is wrong; nothing was started" ;;
    3) meaning="a person must decide first; nothing was started" ;;
    4) meaning="ended short of its goal; it can be resumed" ;;
    130 | 143) meaning="interrupted; its state is saved" ;;
    *) meaning="ended unexpectedly" ;;
esac
{
    echo "### rooda ${words[0]:-}: $meaning"
    echo
    echo "| exit code | state | iterations | cost |"
    echo "|---|---|---|---|"
    echo "| $code | ${state:--} | ${iterations:--} | ${cost:+\$}${cost:-unknown} |"
    echo
    { # as code, because a cause and a log may hold an agent's words
        echo "${cause:+Cause: $cause}"
        tail -n 30 "$folder/rooda.log"
    } | cut -c1-500 | sed 's/^/    /'
} >>"$GITHUB_STEP_SUMMARY"
exit "$code"
