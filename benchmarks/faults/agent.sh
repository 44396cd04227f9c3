# The agent of all four kinds of loops. What it answers follows from the call and the files alone, never from how often it
# was asked. It notes when it begins and ends, whether an agent of another run is at work, and leaves a process behind.
notes=$FAULTS_NOTES
prompt=$(cat)
key="$ROODA_CALL $ROODA_ITERATION"
case $ROODA_LOOP in
reflex) level=${prompt#*phase level } && key="$key ${level%%.*}" ;;
flow) key="$key $ROODA_NODE $ROODA_LABEL" ;;
esac
for other in "$notes"/alive/*; do
    read -r run 2>/dev/null <"$other" || continue
    [ "$run" = "$ROODA_RUN" ] || { grep -q "$FAULTS_MARK" "/proc/${other##*/}/environ" && echo "$run $key" >>"$notes/doubled"; } 2>/dev/null
done
here() { # pid of somebody who is at work
    echo "$ROODA_RUN" >"$notes/alive/$1"
}
here $$
echo "$ROODA_RUN begin $key" >>"$notes/calls"
sleep 1000 &

plan() {
    cat <<'END'
{"scores": {"outcome": {"score": 2, "quote": "Make alpha"}, "scope": {"score": 2, "quote": "and beta"},
  "constraints": {"score": 2, "quote": "nothing else"}, "success": {"score": 2, "quote": "checked by their presence"},
  "done": {"score": 1, "quote": "done then"}},
 "reversibility": "2B", "workflow_gate": {"kind": "library_search", "evidence": "one or two"},
 "criteria": [{"name": "alpha", "verification": "execution output", "command": "test -f alpha"},
  {"name": "beta", "verification": "execution output", "command": "test -f beta"}],
 "steps": [{"name": "first", "criteria": ["alpha"]}, {"name": "second", "criteria": []}, {"name": "third", "criteria": ["beta"]}]}
END
}

step() {
    claim=false
    case $(printf '%s\n' "$prompt" | sed -n '/^## Your step/{n;n;p;}') in
    *first*) echo 1 >alpha ;;
    *second*) echo 2 >between ;;
    *) echo 3 >beta; claim=true ;;
    esac
    printf -- '---LOOP_STATUS---\nEXIT_SIGNAL: %s\nCRITERIA: {}\n---END_STATUS---\n' $claim
}

artifact() { # what it lacks in iteration 1 is judged by an agent
    printf '# Courses\n\n## Endpoints\n\nENDPOINTS\n\n## Names\n\nNAMES\n'
    [ "$ROODA_ITERATION" = 1 ] || printf '\n## Access\n\nACCESS\n'
}

checks() {
    printf '{"checks": [{"rule_id": "a.correct.endpoints", "type": "content", "search": "ENDPOINTS", "expected": "there"},
 {"rule_id": "a.style.names", "type": "executable", "command": "grep -q NAMES %s", "expected": "exit 0"}]}\n' \
        .ai-factory/evolution/courses/artifact.md
}

fixes() {
    echo '{"issues": [{"rule_id": "b.complete.access", "problem": "none", "fix_instruction": "Add it", "expected_effect": "there"}]}'
}

verdicts() {
    case $ROODA_ITERATION in 1) verdict=fail ;; *) verdict=pass ;; esac
    printf '{"rule_results": [{"id": "b.complete.access", "verdict": "%s", "details": "seen"}]}\n' $verdict
}

flow() { # FLOW: ROLE NAME INPUT OUTPUT in the prompt, one line for each file to write
    printf '%s\n' "$prompt" | sed -n 's/^FLOW: //p' | while read -r role name input output; do
        read -r now <work.txt
        parent=${ROODA_LABEL%.*}
        case $role in
        sensor) # INPUT is what it has to come to
            [ "$input" = parent ] && input=$parent
            [ "$now" -ge "$input" ] && status=pass || status=fail
            printf -- '---\nsensor: %s\nstatus: %s\n---\n# Sensor\n' "$name" $status >"$output" ;;
        controller)
            grep -q '^status: pass' "$input" && met=true || met=false
            printf -- '---\ntarget-met: %s\n---\n# Controller\n\n## Gap Analysis\n\ngap\n\n## Action Plan\n\n1. do it\n' $met >"$output" ;;
        actuator)
            echo "$parent" >work.txt
            printf '# Actuator\n\n## What Was Done\n\nWrote %s.\n' "$parent" >"$output" ;;
        esac
    done
}

case $ROODA_LOOP,$ROODA_CALL in
ooda,*) mkdir -p made && echo "$ROODA_ITERATION" >"made/$ROODA_ITERATION" && echo done ;;
reflex,plan) echo '{"plan": ["Endpoints first", "Then the names", "Then the rest"]}' ;;
reflex,prepare) checks ;;
reflex,critique) fixes ;;
reflex,evaluate) verdicts ;;
reflex,*) artifact ;;
goal,plan) plan ;;
goal,*) step ;;
flow,*) flow ;;
esac
if [ "$(head -n 1 "$notes/clings" 2>/dev/null)" = "$key" ]; then
    . "$notes/clings.sh"
fi
echo "$ROODA_RUN end $key" >>"$notes/calls"
rm -f "$notes/alive/$$"
