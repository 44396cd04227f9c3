#!/usr/bin/env bash
# rooda v1: the whole loop as one shell script. Kept to run and to compare with, not to use; see README.md here.
# It needs bash 3.2 or newer and nothing else.

usage() {
    cat <<'END'
Usage: rooda.sh PROCEDURE [options]
       rooda.sh --observe FILE --orient FILE --decide FILE --act FILE [options]

PROCEDURE takes its four prompts from ./prompts/observe_PROCEDURE.md, orient_PROCEDURE.md, decide_PROCEDURE.md
and act_PROCEDURE.md. A phase flag replaces one of them.

  --max-iterations N   stop after N iterations; 0, the default, never stops (Ctrl+C does)
  --ai-cmd "COMMAND"   what each prompt is piped to (default: $ROODA_AI_CMD, else "claude -p")
  -h, --help           show this
END
}

fail() {
    echo "rooda.sh: $1" >&2
    echo "Try: rooda.sh --help" >&2
    exit 2
}

# $(cat) drops the newlines at the end of each file, so one empty line always stands between two phases.
create_prompt() {
    cat <<END
# OODA Loop Iteration

## OBSERVE
$(cat "$observe")

## ORIENT
$(cat "$orient")

## DECIDE
$(cat "$decide")

## ACT
$(cat "$act")
END
}

procedure=
observe=
orient=
decide=
act=
max_iterations=0
ai_cmd=${ROODA_AI_CMD:-claude -p}

while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --observe | --orient | --decide | --act | --max-iterations | --ai-cmd)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case $1 in
                --observe) observe=$2 ;;
                --orient) orient=$2 ;;
                --decide) decide=$2 ;;
                --act) act=$2 ;;
                --max-iterations) max_iterations=$2 ;;
                --ai-cmd) ai_cmd=$2 ;;
            esac
            shift 2
            ;;
        -*) fail "unknown option $1" ;;
        *)
            [ -z "$procedure" ] || fail "only one procedure, please: $procedure or $1"
            procedure=$1
            shift
            ;;
    esac
done

case $max_iterations in
    '' | *[!0-9]*) fail "--max-iterations must be a whole number, got '$max_iterations'" ;;
esac
if [ -n "$procedure" ]; then
    observe=${observe:-prompts/observe_$procedure.md}
    orient=${orient:-prompts/orient_$procedure.md}
    decide=${decide:-prompts/decide_$procedure.md}
    act=${act:-prompts/act_$procedure.md}
fi
for file in "$observe" "$orient" "$decide" "$act"; do
    [ -n "$file" ] || fail "name a procedure, or all four phase files"
    [ -f "$file" ] || fail "no such prompt file: $file"
done

iteration=0
while [ "$max_iterations" -eq 0 ] || [ "$iteration" -lt "$max_iterations" ]; do
    iteration=$((iteration + 1))
    echo "=== Iteration $iteration ==="
    create_prompt | sh -c "$ai_cmd"
done
echo "Reached max iterations: $max_iterations"
