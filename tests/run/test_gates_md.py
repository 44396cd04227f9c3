"""Quality gates as people write them in AGENTS.md: what is taken, what is not, and why."""

import pytest

from rooda.run.gates_md import read, read_commands
from rooda.run.records import Programs
from tests.kit.workspace import Workspace

HERE = {"README.md", ".github/workflows/ci.yml", "package.json", "log.txt", "docs/report.txt"}
TOOLS = {"ruff", "pytest", "mypy", "bash", "make", "tox", "./check.sh", "scripts/check", "./scripts/docs-push.sh"}
PROGRAMS = Programs(lambda name: name in TOOLS, lambda path: path in HERE)

TAKEN = {
    "- lint: `ruff check .`": "ruff check .",
    "* `pytest -q`": "pytest -q",
    "+ tests: `make test`": "make test",
    "1. `cargo test`": "cargo test",
    "2) types: `mypy --strict src`": "mypy --strict src",
    "- **Unit tests:** `npm test`": "npm test",
    "- **Lint**: `npm run lint`": "npm run lint",
    "**Build:** `go build ./...`": "go build ./...",
    "Types — `tsc --noEmit`": "tsc --noEmit",
    "- Types – `tsc --noEmit`": "tsc --noEmit",
    "- Format - `cargo fmt -- --check`": "cargo fmt -- --check",
    "- `pytest` passes": "pytest",
    "- `make test` must pass": "make test",
    "- `ruff check .` is clean": "ruff check .",
    "- `tox` (all environments)": "tox",
    "- `mypy src` [strict]": "mypy src",
    "- `go vet ./...` exits with 0": "go vet ./...",
    "- `make test`, must exit 0.": "make test",
    "- `npm run check`: no errors": "npm run check",
    "- [ ] `make test`": "make test",
    "- [x] lint: `ruff check .`": "ruff check .",
    "- `cargo test --release`": "cargo test --release",
    "- `pytest tests/test_deploy.py`": "pytest tests/test_deploy.py",
    "- `npm run format:check`": "npm run format:check",
    "- `black --check .`": "black --check .",
    "- `uv run ruff format --check .`": "uv run ruff format --check .",
    "- `mix format --check-formatted`": "mix format --check-formatted",
    "- `dotnet format --verify-no-changes`": "dotnet format --verify-no-changes",
    "- `terraform fmt -check`": "terraform fmt -check",
    "- `prettier --check .`": "prettier --check .",
    '- `test -z "$(gofmt -l .)"`': 'test -z "$(gofmt -l .)"',
    "- `git diff --exit-code`": "git diff --exit-code",
    "- `./check.sh`": "./check.sh",
    "- `make clean test`": "make clean test",
    "- `pytest -q 2>&1 | tail -n 20`": "pytest -q 2>&1 | tail -n 20",
    "- `pytest > /dev/null`": "pytest > /dev/null",
    "- tests: ``echo `date` && make test``": "echo `date` && make test",
    "- `CI=1 npm test`": "CI=1 npm test",
    "- coverage: `coverage`": "coverage",  # a label makes it a gate, and a start is refused without the program
    "- `bundle exec rspec`": "bundle exec rspec",
    "- `python -m unittest`": "python -m unittest",
    "- `pre-commit run --all-files`": "pre-commit run --all-files",
    "- `./gradlew spotlessCheck testReleaseUnitTest`": "./gradlew spotlessCheck testReleaseUnitTest",
    "- `python manage.py makemigrations --check`": "python manage.py makemigrations --check",
    "- `shfmt -d .`": "shfmt -d .",
    "- `go mod tidy -diff`": "go mod tidy -diff",
    "- `npm run test-release`": "npm run test-release",
    "- `cargo nextest run`": "cargo nextest run",
    "- `vitest run`": "vitest run",
    "- `sed -n 1,5p x | grep y`": "sed -n 1,5p x | grep y",
    "- `pytest -k release`": "pytest -k release",
    "- `cargo test migrate`": "cargo test migrate",
    "- `mvn clean verify`": "mvn clean verify",
    "- `sbt scalafmtCheckAll`": "sbt scalafmtCheckAll",
    "- `python tools/generate_docs.py --check`": "python tools/generate_docs.py --check",
    "- `bash tests/test_deploy.sh`": "bash tests/test_deploy.sh",
    "- `uv lock --check`": "uv lock --check",
    "- `npm run lint-staged`": "npm run lint-staged",
    "- `INSTA_UPDATE=no cargo test`": "INSTA_UPDATE=no cargo test",
    "- `dart format -o none --set-exit-if-changed .`": "dart format -o none --set-exit-if-changed .",
    "- `helm lint charts/x`": "helm lint charts/x",
}
REFUSED = (
    "- never run `make test` twice",
    "- Do not use `npm test`",
    "- don't run `pytest`",
    "- `npm test` is forbidden",
    "- use `make test` instead of `pytest`",
    "- see `.github/workflows/ci.yml`",
    "- `.github/workflows/ci.yml`",
    "- config: `package.json`",
    "- `README.md`",
    "- `coverage`",
    "- `npm test` and `npm run lint`",
    "- run `pytest` and look at the coverage report",
    "- before a commit, all of `make test` has to be read",
    "| lint | `ruff check .` |",
    "- `ruff check --fix .`",
    "- `npm run fix`",
    "- `npm run lint:fix`",
    "- `npm run lint -- --fix`",
    "- `ruff format .`",
    "- `black .`",
    "- `uv run black src`",
    "- `python -m isort .`",
    "- `cargo fmt`",
    "- `go fmt ./...`",
    "- `gofmt -w .`",
    "- `prettier --write .`",
    "- `npx prettier --write .`",
    "- `git push`",
    "- `make test && git push`",
    "- `git add -A && git commit -m x`",
    "- `git tag v1`",
    "- `git reset --hard`",
    "- `npm publish`",
    "- `cargo publish --dry-run`",
    "- `make deploy`",
    "- `npm run deploy:prod`",
    "- `twine upload dist/x`",
    "- `rails db:migrate`",
    "- `alembic upgrade head`",
    "- `pip install -e .`",
    "- `npm ci && npm test`",
    "- `rm -rf build && make test`",
    "- `make release`",
    "- `pytest > log.txt`",
    "- `pytest 2>docs/report.txt`",
    "- `sed -i s/a/b/ x.py`",
    "- `terraform apply`",
    "- `docker push x`",
    "- `bash -c 'git push'`",
    "- `curl -X POST https://example.org/deploy`",
    "- `make docker-push`",
    "- `gradle publishToMavenLocal`",
    "- `mix ecto.migrate`",
    "- `python manage.py makemigrations`",
    "- `ktlint -F`",
    "- `shfmt -w .`",
    "- `stylua .`",
    "- `pytest --snapshot-update`",
    "- `npx jest -u`",
    "- `npm test -- -u`",
    "- `npm version patch`",
    "- `go generate ./...`",
    "- `find . -name '*.pyc' -delete`",
    "- `psql -c 'drop table x'`",
    "- `ansible-playbook site.yml`",
    "- `uv sync && uv run pytest`",
    "- `watch make test`",
    "- `uvicorn app:app --reload`",
    "- `make run`",
    "- `python -m http.server`",
    "- `npm run dev`",
    "- `npm start`",
    "- `npm run test:watch`",
    "- `jest --watch`",
    "- `npm run lint-fix`",
    "- `make fix-imports`",
    "- `make push-image`",
    "- `make test-and-deploy`",
    "- `make clean`",
    "- `npm run prettier`",
    "- `bash scripts/deploy.sh`",
    "- `python tools/release.py`",
    "- `source ./publish.sh`",
    "- `./scripts/docs-push.sh`",
    "- `bash -lc 'npm publish'`",
    "- `UPDATE_SNAPSHOTS=1 pytest`",
    "- `pytest --inline-snapshot=fix`",
    "- `python manage.py flush`",
    "- `alembic downgrade base`",
    "- `poetry lock`",
    "- `composer require x/y`",
    "- `go get -u ./...`",
    "- `ruff check . --add-noqa`",
    "- `vendor/bin/rector process`",
    "- `docker compose down -v`",
    "- `bazel run //:push`",
    "- `codespell -w`",
    "- `cargo insta accept`",
    "- `rails db:schema:load`",
    "- `dart format --set-exit-if-changed .`",
    "- `rails s`",
    "- `cargo run`",
    "- `tsc -w`",
    '- `echo "x`',
)
HEADINGS = ("## Quality Gates", "# Quality gates", "### Code quality gates (must pass)", "## 5. Quality Gates ✅",
            "#### QUALITY GATE", "Quality Gates\n=====", "Quality gates\n---", "## Quality-gates ##")  # fmt: skip


@pytest.mark.parametrize("line", TAKEN)
def test_I_02_a_gate_is_taken(line: str) -> None:
    """One command a line, with a label or without, followed by no more than words that it must pass."""
    found = read(f"## Quality Gates\n\n{line}\n", "AGENTS.md", PROGRAMS)
    assert [gate.command for gate in found.gates] == [TAKEN[line]] and not found.left
    assert found.gates[0].origin == "AGENTS.md:3"


@pytest.mark.parametrize("line", REFUSED)
def test_I_03_never_a_gate(line: str) -> None:
    """What writes, forbids, does not end, or is no command is not taken, and listed with a reason."""
    found = read(f"## Quality Gates\n\n{line}\n", "AGENTS.md", PROGRAMS)
    assert not found.gates
    assert [(each.origin, each.text) for each in found.left] == [("AGENTS.md:3", line)] and found.left[0].why


@pytest.mark.parametrize("heading", HEADINGS)
def test_I_01_headings(heading: str) -> None:
    """Any level, with words before and after; the section ends at the next heading of its level."""
    level = "#" * max(1, len(heading) - len(heading.lstrip("#"))) if heading.startswith("#") else "##"
    level = "#" if heading.endswith("=") else level
    below = f"{level}# Below\n\n- b: `make b`\n\n{level} Next\n\n- c: `make c`\n"
    text = f"# Title\n\n{heading}\n\n- a: `make a`\n\n{below}"
    assert [gate.command for gate in read(text).gates] == ["make a", "make b"]


@pytest.mark.parametrize(
    ("fence", "taken", "left"),
    [
        ("```sh\nruff check .\n# all of it\npytest -q  # slow\n```", ["ruff check .", "pytest -q"], 0),
        ("~~~bash\n$ make test\n~~~", ["make test"], 0),
        ("- first:\n  ```bash\n  make a\n  make b\n  ```", ["make a", "make b"], 0),
        ("```console\n$ make test\nok\n$ make lint\n```", ["make test", "make lint"], 1),
        ("```bash\ncd web\nnpm test\n```", ["bash -ec 'cd web\nnpm test'"], 0),
        ("```sh\nexport CI=1\nnpm test\n```", ["sh -ec 'export CI=1\nnpm test'"], 0),
        ("```sh\nmake \\\n  test\n```", ["sh -ec 'make \\\n  test'"], 0),
        ("```sh\nset -e\nif make a; then\n  make b\nfi\n```", ["sh -ec 'set -e\nif make a; then\n  make b\nfi'"], 0),
        ("```bash\ncd web\nnpm ci\nnpm test\n```", [], 1),
        ("```sh\nmake test\ngit push\n```", ["make test"], 1),
        ("```\nmake test\n```", [], 1),
        ("```python\nprint(1)\n```", [], 0),
        ("<!--\n```sh\nmake test\n```\n-->", [], 0),
    ],
)
def test_I_02_fences(fence: str, taken: list[str], left: int) -> None:
    """A line each, without prompts; lines that depend on each other are one gate, and none if one of them writes."""
    found = read(f"## Quality Gates\n\n{fence}\n", "AGENTS.md", PROGRAMS)
    assert [gate.command for gate in found.gates] == taken
    assert len(found.left) == left


def test_I_04_commands() -> None:
    """Fences and bold labels below headings such as Build/Test/Lint; other lines and manual ones do not count."""
    text = """# P
### Build, test and lint
Use make:
```sh
make test
make deploy
```
**Lint:** `make lint`
**Manual verification:** `make look`
- `make something`
## Other
**Test:** `no`
"""
    found = read_commands(text, "AGENTS.md", PROGRAMS)
    assert [(gate.name, gate.command) for gate in found.gates] == [("make test", "make test"), ("lint", "make lint")]
    assert [each.text for each in found.left] == ["make deploy"]


def test_I_03_the_user_sees_what_is_not_taken(ws: Workspace) -> None:
    """A dry run and doctor list the line, its place and the reason."""
    ws.procedure("build", gates=None)
    ws.write("AGENTS.md", "# P\n\n## Quality gates\n\n- tests: `true`\n- publish: `npm publish`\n")
    for words in (["build", "--dry-run"], ["doctor"]):
        out = " ".join(ws.rooda(*words).out.split())
        assert "AGENTS.md:6: not taken as a quality gate, because `publish` changes more than it checks" in out
        assert "AGENTS.md:5" in out


def main() -> None:
    """Print how many lines of the collection are judged right."""
    right = sum([gate.command for gate in read(f"## Quality Gates\n{line}").gates] == [TAKEN[line]] for line in TAKEN)
    wrong = [line for line in REFUSED if read(f"## Quality Gates\n{line}", "", PROGRAMS).gates]
    print(f"gates taken         {right:3} of {len(TAKEN)}")
    print(f"dangerous or no gate, taken {len(wrong):3} of {len(REFUSED)}")


if __name__ == "__main__":
    main()
