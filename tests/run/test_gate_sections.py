"""Whole sections about quality gates, as projects write them: which commands are taken, in order."""

import pytest

from rooda.run.gates_md import read
from rooda.run.records import Programs

TOOLS = {"bash", "make", "pytest", "ruff", "mypy", "tox", "just", "vitest", "./scripts/check", "bin/ci"}
PROGRAMS = Programs(lambda name: name in TOOLS, lambda path: path in {"out.txt", "Makefile"})
A, B = "make test", "make lint"


def bullets(*lines: str, heading: str = "## Quality Gates") -> str:
    return "\n".join([heading, "", *(f"- {line}" for line in lines), ""])


def fence(language: str, *lines: str, before: str = "") -> str:
    return "\n".join(["## Quality gates", before, f"```{language}", *lines, "```", ""])


SECTIONS: tuple[tuple[str, list[str]], ...] = (
    # headings
    (bullets(f"`{A}`", heading="# Quality gates"), [A]),
    (bullets(f"`{A}`", heading="###### Quality Gates"), [A]),
    (bullets(f"`{A}`", heading="### 🚦 Quality gates (run before every commit)"), [A]),
    (bullets(f"`{A}`", heading="## 3. Our quality-gates"), [A]),
    (bullets(f"`{A}`", heading="## **Quality Gates**"), [A]),
    (bullets(f"`{A}`", heading="## Quality"), []),
    (bullets(f"`{A}`", heading="## Gates of the quality department"), []),
    (bullets(f"`{A}`") + "### Slow ones\n- `make e2e`\n## Deploying\n- `make ship`\n", [A, "make e2e"]),
    ("Quality gates\n-------------\n\n* `make test`\n* `make lint`\n", [A, B]),
    ("## Setup\n- `make deps`\n## Quality gates\n- `make test`\n", [A]),
    ("## Quality gates\n\nNone yet.\n", []),
    # forms of lines
    (bullets(f"lint: `{B}`", f"**Tests:** `{A}`"), [B, A]),
    (bullets(f"Tests — `{A}`", f"Lint – `{B}`", "Types - `mypy`"), [A, B, "mypy"]),
    (bullets(f"[ ] `{A}` passes", f"[x] `{B}` is clean"), [A, B]),
    (bullets(f"`{A}` must pass without warnings", f"`{B}` (fast)", "`mypy`, exit 0"), [A, B, "mypy"]),
    ("## Quality gates\n1. `make test`\n2. `make lint`\n10) `mypy`\n", [A, B, "mypy"]),
    ("## Quality gates\n\n**Test:** `make test`\n\n**Lint:** `make lint`\n", [A, B]),
    (bullets(f"`{A}` and then read the report", f"`{B}`"), [B]),
    (bullets(f"Run `{A}` or `{B}`", f"`{A}`"), [A]),
    ("## Quality gates\n\n| check | command |\n|---|---|\n| tests | `make test` |\n", []),
    ("## Quality gates\n\nRun `make test` before you push.\n", []),
    (bullets(f"``{A}``", "- nested: `make lint`"), [A, B]),
    (bullets(f"tests:\n  - `{A}`\n  - `{B}`"), [A, B]),
    (bullets("`CI=1 make test`", "`env CI=1 make lint`"), ["CI=1 make test", "env CI=1 make lint"]),
    (bullets(f"`{A}`\r").replace("\n", "\r\n"), [A]),
    # fences
    (fence("sh", A, B), [A, B]),
    (fence("bash", f"$ {A}", f"$ {B}"), [A, B]),
    (fence("console", f"$ {A}", "42 passed", f"$ {B}"), [A, B]),
    (fence("shell", "# all", f"{A}  # slow", "", B), [A, B]),
    (fence("bash", "cd web", "npm test"), ["bash -ec 'cd web\nnpm test'"]),
    (fence("sh", "export CI=1", A), [f"sh -ec 'export CI=1\n{A}'"]),
    (fence("bash", "set -euo pipefail", A, "rm -rf out"), []),
    (fence("bash", "cd web && npm ci", "npm test"), []),
    (fence("sh", "cat <<EOF | make -f -", "x:", "EOF"), ["sh -ec 'cat <<EOF | make -f -\nx:\nEOF'"]),
    (fence("", A), []),
    (fence("yaml", "run: make test"), []),
    (fence("python", "import x"), []),
    (fence("bash", A, "git push", B), [A, B]),
    (fence("sh", A, before="Run these:") + f"- `{B}`\n", [A, B]),
    # what forbids
    (bullets(f"never run `{A}` on main", f"`{B}`"), [B]),
    (bullets("don't use `npm test`", "do not `make all`", f"`{A}` instead of `tox`"), []),
    (bullets("`make all` is forbidden", "`tox`"), ["tox"]),
    # what is no command
    (bullets("`.github/workflows/ci.yml`", "`Makefile`", "`coverage`", f"`{A}`"), [A]),
    (bullets("`src/`", "config: `setup.cfg`", "`bin/ci`"), ["bin/ci"]),
    (bullets("coverage: `coverage`", "`unknown-tool`"), ["coverage"]),
    (bullets("`./scripts/check`", "`scripts/other`"), ["./scripts/check"]),
    # what writes
    (bullets("`ruff check .`", "`ruff check --fix .`", "`ruff format .`"), ["ruff check ."]),
    (bullets("`ruff format --check .`", "`black --check .`", "`isort --check-only .`"),
     ["ruff format --check .", "black --check .", "isort --check-only ."]),
    (bullets("`npm run lint`", "`npm run lint:fix`", "`npm run format`", "`npm run format:check`"),
     ["npm run lint", "npm run format:check"]),
    (bullets("`cargo clippy -- -D warnings`", "`cargo fmt --check`", "`cargo fmt`", "`cargo publish`"),
     ["cargo clippy -- -D warnings", "cargo fmt --check"]),
    (bullets("`go vet ./...`", "`go mod tidy`", "`gofmt -l .`", "`gofmt -w .`"), ["go vet ./...", "gofmt -l ."]),
    (bullets("`./gradlew check`", "`./gradlew spotlessApply`", "`mvn -q verify`", "`mvn deploy`"),
     ["./gradlew check", "mvn -q verify"]),
    (bullets("`bundle exec rubocop`", "`bundle exec rubocop -A`", "`bin/rails db:migrate`"), ["bundle exec rubocop"]),
    (bullets("`mix test`", "`mix format`", "`mix ecto.reset`", "`mix format --check-formatted`"),
     ["mix test", "mix format --check-formatted"]),
    (bullets("`dotnet test`", "`dotnet format`", "`dotnet format --verify-no-changes`"),
     ["dotnet test", "dotnet format --verify-no-changes"]),
    (bullets("`terraform validate`", "`terraform fmt -check`", "`terraform apply`"),
     ["terraform validate", "terraform fmt -check"]),
    (bullets("`git diff --exit-code`", "`git add -A`", "`git stash && make test`"), ["git diff --exit-code"]),
    (bullets("`pytest > out.txt`", "`pytest > /dev/null`", "`pytest | tee out.txt`"), ["pytest > /dev/null"]),
    (bullets("`make deploy`", "`make docker-push`", "`make db-reset`", "`make release`", f"`{A}`"), [A]),
    (bullets("`kubectl apply -f x`", "`docker push x`", "`ssh host make test`", "`curl -X POST x`"), []),
    (bullets("`pip install -e .`", "`npm ci`", "`uv sync`", "`cargo update`"), []),
    # what does not end
    (bullets("`npm run dev`", "`npm start`", "`flask run`", "`tail -f out.txt`", "`npm run build`"), ["npm run build"]),
    (bullets("`vitest`", "`vitest run`", "`vitest --watch`", "`npx jest --watchAll`"), ["vitest", "vitest run"]),
)  # fmt: skip


def taken(section: str) -> list[str]:
    return [gate.command for gate in read(f"# P\n\n{section}", "AGENTS.md", PROGRAMS).gates]


@pytest.mark.parametrize("number", range(len(SECTIONS)))
def test_I_01_I_02_I_03_sections(number: int) -> None:
    """Exactly the commands that check are gates."""
    section, wanted = SECTIONS[number]
    assert taken(section) == wanted, section


def main() -> None:
    """Print how many sections are read as they are meant, and each gate that should be none."""
    wrong = [(section, taken(section), wanted) for section, wanted in SECTIONS if taken(section) != wanted]
    dangerous = [gate for _, found, wanted in wrong for gate in found if gate not in wanted]
    print(f"gate sections right {len(SECTIONS) - len(wrong):3} of {len(SECTIONS)}")
    print(f"gates that are none {len(dangerous):3}", *dangerous)


if __name__ == "__main__":
    main()
