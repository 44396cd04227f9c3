#!/usr/bin/env bash
# Installs rooda into an environment of its own, and puts it on the PATH of the following steps.
set -euo pipefail

fail() {
    echo "::error title=rooda::$1"
    exit 2
}

case $(uname -s) in Linux | Darwin) ;; *) fail "rooda runs on Linux and macOS; this runner is $(uname -s)." ;; esac
case $INPUT_VERSION in
    "")
        if command -v rooda >/dev/null; then
            rooda --version
            exit
        fi
        wanted=rooda
        ;;
    -*) fail "The input version begins with a dash: $INPUT_VERSION" ;;
    [0-9]*) wanted="rooda==$INPUT_VERSION" ;;
    *) wanted=$INPUT_VERSION ;;
esac
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "rooda needs Python 3.11 or newer as python3; add a step with actions/setup-python."
folder="$RUNNER_TEMP/rooda-environment"
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check "$wanted"
echo "$folder/bin" >>"$GITHUB_PATH"
"$folder/bin/rooda" --version
