"""Moves modules of rooda to new places and merges them, rewriting every import, reference and path.

    python tools/move.py move MAP.tsv ROOM…     git mv the modules whose new place is in one of these rooms
    python tools/move.py merge MAP.tsv ROOM…    join the modules that share one new place
    python tools/move.py check MAP.tsv          conflicts of names that the merges will meet

MAP.tsv: old module, new module (both without `rooda/` and `.py`), and optionally renames `old=new,…` of top-level names.
A module that shares its new place with others waits beside it, under a name of its own, until it is merged.
"""

import ast
import collections
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CODE = ("rooda", "tests", "tools", "benchmarks")
TEXTS = ("*.md", "*.toml", "*.json", "*.sh", ".ci/run", "*.txt", "*.svg", "*.css", "*.tsv", "*.yaml", "*.cfg", "*.c")


class Row(NamedTuple):
    old: str  # "world/files"
    new: str  # "base/files"
    names: dict[str, str]  # renames of top-level names


def rows(path: str) -> list[Row]:
    found = []
    for line in Path(path).read_text().splitlines()[1:]:
        old, new, *more = line.split("\t")
        names = dict(pair.split("=") for pair in more[0].split(",") if pair) if more and "=" in more[0] else {}
        found.append(Row(old, new, names))
    return found


def dotted(module: str) -> str:
    return "rooda." + module.replace("/", ".") if module else "rooda"


def file_of(module: str) -> Path:
    return ROOT / "rooda" / f"{module}.py"


def primary(new: str, olds: list[str]) -> str:
    leaf = new.rpartition("/")[2]
    by_leaf = [old for old in olds if old.rpartition("/")[2] == leaf]
    return (by_leaf or sorted(olds, key=lambda old: -file_of(old).stat().st_size if file_of(old).exists() else 0))[0]


def waiting_places(table: list[Row]) -> dict[str, str]:
    """Old module to the place it has between move and merge."""
    sharing = collections.defaultdict(list)
    for row in table:
        sharing[row.new].append(row.old)
    places: dict[str, str] = {}
    taken = set(sharing)
    for new, olds in sharing.items():
        first = olds[0]  # the table names the main module first
        places[first] = new
        for old in olds[1:]:
            room, leaf = new.rpartition("/")[0], old.rpartition("/")[2]
            place = f"{room}/{leaf}" if room else leaf
            if place in taken or leaf == "__init__":
                place = f"{new}_{leaf.strip('_')}"
            taken.add(place)
            places[old] = place
    return places


# ---------------------------------------------------------------- scopes


class Scope:
    def __init__(self, node: ast.AST, outer: "Scope | None") -> None:
        self.node, self.outer = node, outer
        self.bound: dict[str, list[ast.AST]] = collections.defaultdict(list)
        self.globals: set[str] = set()

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


class Scopes(ast.NodeVisitor):
    """The scope of every name that is read, and what binds it."""

    def __init__(self, tree: ast.Module) -> None:
        self.top = self.scope = Scope(tree, None)
        self.reads: list[tuple[ast.Name, Scope]] = []
        self.writes: list[tuple[ast.Name, Scope]] = []
        self.imports: list[tuple[ast.Import | ast.ImportFrom, Scope]] = []
        for statement in tree.body:
            self.visit(statement)

    def _bind(self, name: str, node: ast.AST, scope: Scope | None = None) -> None:
        scope = scope or self.scope
        if name in scope.globals:
            scope = self.top
        scope.bound[name].append(node)

    def _inside(self, node: ast.AST, fields: Iterable[ast.AST]) -> None:
        self.scope = Scope(node, self.scope)
        for field in fields:
            self.visit(field)
        assert self.scope.outer
        self.scope = self.scope.outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(node.name, node)
        for part in (*node.decorator_list, node.args, *filter(None, (node.returns,))):
            self._outer_parts(part)
        self.scope = Scope(node, self.scope)
        self._arguments(node.args)
        for part in node.body:
            self.visit(part)
        assert self.scope.outer
        self.scope = self.scope.outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def _outer_parts(self, part: ast.AST) -> None:
        if isinstance(part, ast.arguments):
            for each in (*part.posonlyargs, *part.args, *part.kwonlyargs, part.vararg, part.kwarg):
                if each is not None and each.annotation is not None:
                    self.visit(each.annotation)
            for default in (*part.defaults, *part.kw_defaults):
                if default is not None:
                    self.visit(default)
        else:
            self.visit(part)

    def _arguments(self, arguments: ast.arguments) -> None:
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        for each in every:
            if each is not None:
                self._bind(each.arg, each)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._outer_parts(node.args)
        self.scope = Scope(node, self.scope)
        self._arguments(node.args)
        self.visit(node.body)
        assert self.scope.outer
        self.scope = self.scope.outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name, node)
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._inside(node, node.body)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.visit(node.generators[0].iter)
        self.scope = Scope(node, self.scope)
        for index, generator in enumerate(node.generators):
            self.visit(generator.target)
            if index:
                self.visit(generator.iter)
            for test in generator.ifs:
                self.visit(test)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        assert self.scope.outer
        self.scope = self.scope.outer

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope: Scope = self.scope
        while isinstance(scope.node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) and scope.outer:
            scope = scope.outer
        self._bind(node.target.id, node.target, scope)
        self.writes.append((node.target, scope))
        self.visit(node.value)

    def visit_Global(self, node: ast.Global) -> None:
        self.scope.globals |= {*node.names}

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads.append((node, self.scope))
        else:
            self._bind(node.id, node)
            self.writes.append((node, self.scope))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name, node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.imports.append((node, self.scope))
        for alias in node.names:
            self._bind(alias.asname or alias.name.split(".")[0], node)

    visit_Import = visit_ImportFrom = _import

    def binder(self, name: str, scope: Scope) -> Scope | None:
        """The scope that gives `name` its meaning, seen from `scope`."""
        at: Scope | None = scope
        while at is not None:
            if name in at.bound and (at is scope or not at.is_class):
                return at
            at = at.outer
        return None


# ---------------------------------------------------------------- one file


class Edit(NamedTuple):
    start: int
    end: int
    text: str


class Source:
    """A file's bytes with edits by position."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, path.read_bytes()
        self.starts = [0]
        for line in self.data.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.tree = ast.parse(self.data)
        self.edits: list[Edit] = []
        self.quoted = {id(node): node for node in _quoted_annotations(self.tree)}
        self.unquoted = {key: node.value for key, node in self.quoted.items()}

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.starts[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            self.starts[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def replace(self, node: ast.AST, text: str) -> None:
        self.edits.append(Edit(*self.span(node), text))

    def text(self) -> bytes:
        data = self.data
        for edit in sorted(set(self.edits), key=lambda edit: -edit.start):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        return data

    def requote(self) -> None:
        for key, node in self.quoted.items():
            if self.unquoted[key] != node.value:
                self.replace(node, f'"{self.unquoted[key]}"')

    def write(self) -> bool:
        self.requote()
        if not self.edits:
            return False
        self.path.write_bytes(self.text())
        return True


def _quoted_annotations(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        inner = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
            inner += node.args[:1]
        if isinstance(node, ast.Assign):  # an alias of a type
            inner += [node.value] if isinstance(node.value, ast.Subscript | ast.BinOp) else []
        for each in inner:
            for part in ast.walk(each) if each is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part


class Plan(NamedTuple):
    """Where modules go, and single names of them."""

    modules: dict[str, str]  # dotted old to dotted new
    names: dict[tuple[str, str], tuple[str, str]]  # (old module, name) to (new module, name)

    def of(self, module: str, name: str) -> tuple[str, str]:
        return self.names.get((module, name)) or (self.modules.get(module, module), name)


problems: list[str] = []
introduced: dict[str, str] = {}  # in the file at hand: name to the module it means now


def rewrite(path: Path, plan: Plan, me: str, was: str) -> bool:
    """Imports and references of one file. `me`: its dotted name after the change, `was`: before."""
    source = Source(path)
    scopes = Scopes(source.tree)
    wanted: dict[tuple[Scope, int], list[tuple[str, str, str]]] = collections.defaultdict(list)
    changed = False
    targets = {*plan.modules.values()}
    introduced.clear()
    for node, scope in scopes.imports:
        if isinstance(node, ast.Import):
            if any(alias.name in plan.modules for alias in node.names):
                problems.append(f"{path}:{node.lineno}: import statement by hand: {ast.unparse(node)}")
            continue
        if node.level or not node.module or node.module.split(".")[0] != "rooda":
            continue
        lines: list[tuple[str, str, str]] = []
        for alias in node.names:
            local = alias.asname or alias.name
            whole = f"{node.module}.{alias.name}"
            if whole in plan.modules or (whole in targets and node.module not in plan.modules):
                lines += _module_import(source, scopes, scope, whole, local, alias.asname, plan, me, path)
            else:
                lines += _name_import(source, scopes, scope, node.module, alias, plan, me, path)
        old = [(node.module, alias.name, alias.asname or "") for alias in node.names]
        if lines != old:
            changed = True
            source.replace(node, _statements(node, lines))
    text = _strings(source, plan)
    source.requote()
    if changed or text or source.edits:
        source.write()
        return True
    return False


def _statements(node: ast.ImportFrom, lines: list[tuple[str, str, str]]) -> str:
    grouped: dict[str, list[str]] = collections.defaultdict(list)
    for module, name, alias in lines:
        word = f"{name} as {alias}" if alias and alias != name else name
        if word not in grouped[module]:
            grouped[module].append(word)
    if not grouped:
        return "pass  # moved"
    indent = "\n" + " " * node.col_offset
    made = []
    for module, words in grouped.items():
        line = f"from {module} import {', '.join(sorted(words))}"
        if len(line) + node.col_offset > 120:
            line = f"from {module} import ({indent}    " + f",{indent}    ".join(sorted(words)) + f",{indent})"
        made.append(line)
    return indent.join(made)


def _free(scopes: Scopes, name: str, at: list[Scope], but: object) -> bool:
    """True if `name` means nothing else anywhere it would be read."""
    for scope in at:
        binder = scopes.binder(name, scope)
        if binder is not None and not all(node is but for node in binder.bound[name]):
            return False
    return True


def _module_import(
    source: Source,
    scopes: Scopes,
    scope: Scope,
    whole: str,
    local: str,
    asname: str | None,
    plan: Plan,
    me: str,
    path: Path,
) -> list[tuple[str, str, str]]:
    """References `local.name` to the module `whole`, and the imports they need now."""
    reads = [(name, at) for name, at in scopes.reads if name.id == local and scopes.binder(local, at) is scope]
    parents = {id(child.value): child for child in ast.walk(source.tree) if isinstance(child, ast.Attribute)}
    target = plan.modules.get(whole, whole)
    package, _, leaf = target.rpartition(".")
    here = [at for _, at in reads] or [scope]
    lines: list[tuple[str, str, str]] = []
    for name, at in reads:
        attribute = parents.get(id(name))
        if attribute is None:
            if target == me:
                problems.append(f"{path}:{name.lineno}: module {local} as a value, merged into itself")
                continue
            word = asname or (
                leaf
                if introduced.get(leaf, target) == target
                and (
                    leaf == local or _free(scopes, leaf, here, None) or _same_import(scopes, leaf, package, plan, here)
                )
                else f"{package.rpartition('.')[2]}_{leaf}"
            )
            introduced[word] = target
            if word != local:
                source.replace(name, word)
            lines.append((package, leaf, word if word != leaf else ""))
            continue
        module, new = plan.of(whole, attribute.attr)
        if module == me:
            if not _free_or_top(scopes, new, at):
                problems.append(
                    f"{path}:{name.lineno}: `{local}.{attribute.attr}` is `{new}` here, which a local hides"
                )
            source.replace(attribute, new)
            continue
        new_package, _, new_leaf = module.rpartition(".")
        if asname is not None:
            word, line = asname, (new_package, new_leaf, asname)
        elif new_leaf == local and introduced.get(local, module) == module:
            word, line = local, (new_package, new_leaf, "")
        elif introduced.get(new_leaf, module) == module and (
            _free(scopes, new_leaf, here, None) or _same_import(scopes, new_leaf, new_package, plan, here)
        ):
            word, line = new_leaf, (new_package, new_leaf, "")
        else:
            word = f"{new_package.rpartition('.')[2]}_{new_leaf}"
            line = (new_package, new_leaf, word)
        lines.append(line)
        introduced[word] = module
        start, _ = source.span(name)
        source.edits.append(Edit(start, start + len(local.encode()), word))
        if new != attribute.attr:
            end = source.span(attribute)[1]
            source.edits.append(Edit(end - len(attribute.attr.encode()), end, new))
    for key, value in source.unquoted.items():
        for attr in re.findall(rf"\b{local}\.(\w+)", value):
            module, new = plan.of(whole, attr)
            word = new if module == me else f"{module.rpartition('.')[2] if asname is None else asname}.{new}"
            value = re.sub(rf"\b{local}\.{attr}\b", word, value)
            if module != me:
                new_package, _, new_leaf = module.rpartition(".")
                lines.append((new_package, new_leaf, asname or ""))
        source.unquoted[key] = value
    if not reads and not lines and target != me:
        lines.append((package, leaf, asname or ("" if leaf == local else "")))
    return lines


def _same_import(scopes: Scopes, leaf: str, package: str, plan: Plan, here: list[Scope]) -> bool:
    """True if the name is bound by an import of the very module that is meant."""
    for at in here:
        binder = scopes.binder(leaf, at)
        if binder is None:
            continue
        for node in binder.bound[leaf]:
            if not isinstance(node, ast.ImportFrom) or not node.module:
                return False
            new = plan.modules.get(f"{node.module}.{leaf}", f"{node.module}.{leaf}")
            if new != f"{package}.{leaf}":
                return False
    return True


def _free_or_top(scopes: Scopes, name: str, at: Scope) -> bool:
    binder = scopes.binder(name, at)
    return binder is None or binder is scopes.top


def _name_import(
    source: Source, scopes: Scopes, scope: Scope, module: str, alias: ast.alias, plan: Plan, me: str, path: Path
) -> list[tuple[str, str, str]]:
    target, new = plan.of(module, alias.name)
    local = alias.asname or alias.name
    if new != local and alias.asname is None:
        for key, value in source.unquoted.items():
            source.unquoted[key] = re.sub(rf"(?<![.\w]){local}\b", new, value)
    reads = [(name, at) for name, at in scopes.reads if name.id == local and scopes.binder(local, at) is scope]
    if target == me:
        for name, at in reads:
            if local != new:
                if not _free_or_top(scopes, new, at):
                    problems.append(f"{path}:{name.lineno}: `{local}` is `{new}` here, which a local hides")
                source.replace(name, new)
        return []
    if new != alias.name and alias.asname is None:
        for name, at in reads:
            if not _free(scopes, new, [at], None):
                problems.append(f"{path}:{name.lineno}: `{local}` is `{new}` now, which something hides")
            source.replace(name, new)
    return [(target, new, alias.asname or "")]


def _strings(source: Source, plan: Plan) -> bool:
    """Quoted annotations and module names in string constants."""
    found = False
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "rooda" in node.value:
            start, end = source.span(node)
            if any(start <= edit.start < end for edit in source.edits):
                continue
            raw = source.data[start:end].decode()
            new = in_text(raw, plan)
            if new != raw:
                source.edits.append(Edit(start, end, new))
                found = True
    return found


def in_text(text: str, plan: Plan) -> str:
    """Dotted names and paths of modules in any text."""

    def dots(match: re.Match[str]) -> str:
        whole, tail = match.group(0), ""
        while whole:
            if whole in plan.modules:
                if tail:
                    module, name = plan.of(whole, tail.split(".")[0])
                    return ".".join([module, name, *tail.split(".")[1:]])
                return plan.modules[whole]
            whole, _, last = whole.rpartition(".")
            tail = f"{last}.{tail}" if tail else last
        return match.group(0)

    def attribute(match: re.Match[str]) -> str:
        module, name = match.group(1), match.group(2)
        if module in plan.modules:
            return ":".join(plan.of(module, name))
        return match.group(0)

    def slashes(match: re.Match[str]) -> str:
        module = "rooda." + match.group(1).replace("/", ".")
        return plan.modules[module].replace(".", "/") + ".py" if module in plan.modules else match.group(0)

    text = re.sub(r"\b(rooda(?:\.\w+)+):(\w+)", attribute, text)
    text = re.sub(r"\brooda(?:\.\w+)+", dots, text)
    return re.sub(r"\brooda/([\w/]+)\.py\b", slashes, text)


def everywhere(plan: Plan, places: dict[Path, tuple[str, str]]) -> None:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == Path(__file__):
                continue
            me, was = places.get(path, ("", ""))
            rewrite(path, plan, me, was)
    for pattern in TEXTS:
        for path in ROOT.rglob(pattern):
            kept = {".git", ".venv", "corpus", "golden", ".mypy_cache", "results", "node_modules", "archive"}
            if kept & set(path.parts) or path.name in ("CHANGELOG.md", "move.tsv") or not path.is_file():
                continue
            try:
                text = path.read_text()
            except UnicodeDecodeError:
                continue
            if "rooda" in text and (new := in_text(text, plan)) != text:
                path.write_text(new)


def git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True)


def move(table: list[Row], rooms: list[str]) -> None:
    places = waiting_places(table)
    moving = [
        row for row in table if places[row.old] != row.old and _room(row.new, rooms) and file_of(row.old).exists()
    ]
    # two steps, since one's new name may be another's old one
    for row in moving:
        (ROOT / "rooda" / ".moving").mkdir(exist_ok=True)
        git("mv", f"rooda/{row.old}.py", f"rooda/.moving/{row.old.replace('/', '+')}.py")
    for row in moving:
        file_of(places[row.old]).parent.mkdir(parents=True, exist_ok=True)
        git("mv", f"rooda/.moving/{row.old.replace('/', '+')}.py", f"rooda/{places[row.old]}.py")
        for folder in file_of(places[row.old]).parents:
            if folder == ROOT / "rooda":
                break
            if not (folder / "__init__.py").exists():
                (folder / "__init__.py").touch()
                git("add", str(folder / "__init__.py"))
    modules = {dotted(row.old): dotted(places[row.old]) for row in moving}
    mine = {file_of(places[row.old]): (dotted(places[row.old]), dotted(row.old)) for row in moving}
    everywhere(Plan(modules, {}), mine)


def _room(new: str, rooms: list[str]) -> bool:
    return new.rpartition("/")[0] in rooms


# ---------------------------------------------------------------- merging


def top_names(tree: ast.Module) -> dict[str, ast.stmt]:
    """Names that a module's own statements bind at its top level, imports left out."""
    found: dict[str, ast.stmt] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Import | ast.ImportFrom) or _is_type_checking(statement):
            continue
        else:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found[node.id] = statement
    return found


def top_imports(tree: ast.Module) -> dict[str, str]:
    found = {}
    for statement in tree.body:
        inner = statement.body if isinstance(statement, ast.If) and _is_type_checking(statement) else [statement]
        for each in inner:
            if isinstance(each, ast.ImportFrom):
                found |= {a.asname or a.name: f"{each.module}.{a.name}" for a in each.names}
            elif isinstance(each, ast.Import):
                found |= {a.asname or a.name.split(".")[0]: a.name for a in each.names}
    return found


def _is_type_checking(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.If) and isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"
    )


aliases: dict[Path, dict[str, str]] = {}


def conflicts(group: list[tuple[str, Path, dict[str, str]]]) -> list[str]:
    """Names of the later modules that mean something else in an earlier one. `group`: waiting module, file, renames."""
    owned: dict[str, str] = {}  # name to who defines it
    texts: dict[str, str] = {}
    imported: dict[str, str] = {}
    inside = {dotted(module) for module, _, _ in group}
    found = []
    for module, path, names in group:
        tree = ast.parse(path.read_bytes())
        for name, statement in top_names(tree).items():
            new = names.get(name, name)
            if new in owned and texts[new] != ast.unparse(statement):
                found.append(f"{module}: {new} is defined by {owned[new]} too")
            owned[new], texts[new] = module, ast.unparse(statement)
    for module, path, names in group:
        tree = ast.parse(path.read_bytes())
        for name, what in top_imports(tree).items():
            if what in inside or what.rpartition(".")[0] in inside:
                continue
            if name in owned or imported.setdefault(name, what) != what:
                package, _, leaf = what.rpartition(".")
                aliases.setdefault(path, {})[name] = f"{package.rpartition('.')[2]}_{leaf}"
    return found


def merge(table: list[Row], rooms: list[str], only_check: bool = False) -> None:
    places = waiting_places(table)
    groups: dict[str, list[Row]] = collections.defaultdict(list)
    for row in table:
        if _room(row.new, rooms):
            groups[row.new].append(row)
    joined = {}
    for new, members in groups.items():
        present = [row for row in members if file_of(places[row.old]).exists()]
        if len(present) < 2:
            continue
        group = [(places[row.old], file_of(places[row.old]), row.names) for row in present]
        bad = conflicts(group)
        for each in bad:
            sys.stdout.write(f"CONFLICT {new} <- {each}\n")
        if not bad:
            joined[new] = group
    if not only_check:
        join(joined)


def join(joined: dict[str, list[tuple[str, Path, dict[str, str]]]]) -> None:
    """All members of each group in one file, dependencies first; then everybody else is told."""
    modules, names = {}, {}
    for new, group in joined.items():
        target = dotted(new)
        modules |= {dotted(module): target for module, _, _ in group if dotted(module) != target}
        names |= {
            (dotted(module), old): (target, renamed) for module, _, more in group for old, renamed in more.items()
        }
        for _, path, more in group:
            _rename_top(path, more)
            if path in aliases:
                sys.stdout.write(f"{path} {aliases[path]}\n")
                _alias_imports(path, aliases[path])
    plan = Plan(modules, names)
    places = {path: (dotted(new), "") for new, group in joined.items() for _, path, _ in group}
    everywhere(plan, places)
    for new, group in joined.items():
        text = _joined(new, group)
        for module, path, _ in group:
            if module != new:
                git("rm", "-qf", "--cached", str(path.relative_to(ROOT)))
                path.unlink()
        file_of(new).write_text(text)


def _rename_top(path: Path, names: dict[str, str]) -> None:
    if not names:
        return
    source = Source(path)
    scopes = Scopes(source.tree)
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
            start, end = source.span(node)
            if node.decorator_list:
                start = source.starts[node.lineno - 1] + node.col_offset
            word = b"def " if isinstance(node, ast.FunctionDef) else b"class "
            at = source.data.index(word + node.name.encode(), start) + len(word)
            source.edits.append(Edit(at, at + len(node.name.encode()), names[node.name]))
    for name, at in scopes.reads:
        if name.id in names and scopes.binder(name.id, at) is scopes.top:
            if not _free_or_top(scopes, names[name.id], at):
                problems.append(f"{path}:{name.lineno}: {names[name.id]} is hidden by a local")
            source.replace(name, names[name.id])
    for name, at in scopes.writes:
        if name.id in names and scopes.binder(name.id, at) is scopes.top:
            source.replace(name, names[name.id])
    for key, value in source.unquoted.items():
        for old, new in names.items():
            value = re.sub(rf"(?<![.\w]){old}\b", new, value)
        source.unquoted[key] = value
    source.write()


def _alias_imports(path: Path, aliases: dict[str, str]) -> None:
    """Imported names that mean something else in the module they are merged into get a name of their own."""
    source = Source(path)
    scopes = Scopes(source.tree)
    for node, scope in scopes.imports:
        if not isinstance(node, ast.ImportFrom):
            continue
        lines = []
        for alias in node.names:
            local = alias.asname or alias.name
            if local in aliases:
                for name, at in scopes.reads:
                    if name.id == local and scopes.binder(local, at) is scope:
                        source.replace(name, aliases[local])
                for key, value in source.unquoted.items():
                    source.unquoted[key] = re.sub(rf"(?<![.\w]){local}\b", aliases[local], value)
                lines.append((node.module or "", alias.name, aliases[local]))
            else:
                lines.append((node.module or "", alias.name, alias.asname or ""))
        if any((alias.asname or alias.name) in aliases for alias in node.names):
            source.replace(node, _statements(node, lines))
    source.write()


def _joined(new: str, group: list[tuple[str, Path, dict[str, str]]]) -> str:
    sources = [(module, Source(path)) for module, path, _ in group]
    order = _ordered(sources)
    first = sources[0][1]
    docs = {module: ast.get_docstring(source.tree, clean=False) for module, source in sources}
    imports: list[str] = []
    checking: list[str] = []
    bodies: list[str] = []
    seen: set[str] = set()
    for module, source in order:
        body = []
        for index, node in enumerate(source.tree.body):
            if index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports.append(_piece(source, index))
            elif isinstance(node, ast.If) and _is_type_checking(node):
                checking += [source.data[slice(*source.span(each))].decode() for each in node.body]
            elif isinstance(node, ast.Pass):
                continue
            else:
                key = ast.unparse(node)
                if key in seen and not isinstance(node, ast.FunctionDef | ast.ClassDef):
                    continue
                seen.add(key)
                body.append(_piece(source, index))
        note = f"# {docs[module].splitlines()[0]}\n" if docs[module] and module != sources[0][0] and body else ""
        bodies.append(note + "\n".join(body))
    text = f'"""{docs[sources[0][0]]}"""\n\n' if docs[sources[0][0]] else ""
    text += "\n".join(imports) + "\n"
    checking = [line for line in checking if line.strip() and not line.startswith("pass")]
    if checking:
        if not any("TYPE_CHECKING" in line for line in imports):
            text += "from typing import TYPE_CHECKING\n"
        text += "\nif TYPE_CHECKING:\n" + "".join(
            "    " + line.replace("\n", "\n") + "\n" for line in dict.fromkeys(checking)
        )
    del first
    return text + "\n\n" + "\n\n\n".join(body.strip("\n") for body in bodies if body.strip()) + "\n"


def _piece(source: Source, index: int) -> str:
    """A top-level statement with the comments before it and behind it."""
    body = source.tree.body
    node = body[index]
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    above = body[index - 1].end_lineno if index else 0
    lines = source.data.decode().split("\n")
    taken = lines[(above or 0) : first - 1]
    while taken and not taken[0].strip():
        taken.pop(0)
    blank = "\n" if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) else ""
    return blank + "\n".join([*taken, *lines[first - 1 : node.end_lineno]]) + blank


def _ordered(sources: list[tuple[str, Source]]) -> list[tuple[str, Source]]:
    """A member whose names another needs while it is loaded comes before it."""
    owners = {name: module for module, source in sources for name in top_names(source.tree)}
    needs: dict[str, set[str]] = {}
    for module, source in sources:
        needs[module] = {owners[name] for name in _at_load(source.tree) if owners.get(name, module) != module}
    done: list[tuple[str, Source]] = []
    left = list(sources)
    while left:
        ready = next((each for each in left if not needs[each[0]] - {d[0] for d in done}), left[0])
        if needs[ready[0]] - {d[0] for d in done}:
            problems.append(f"{ready[0]}: needs {needs[ready[0]]} at load time, in a ring")
        left.remove(ready)
        done.append(ready)
    return done


def _at_load(tree: ast.Module) -> Iterator[str]:
    """Names that are read when the module is loaded: not those inside functions."""

    def walk(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner: list[ast.AST] = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
            inner += [each.annotation for each in every if each is not None and each.annotation is not None]
            inner += [node.returns] if node.returns else []
        elif isinstance(node, ast.Lambda):
            inner = []
        else:
            inner = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        for each in inner:
            yield from walk(each)

    for statement in tree.body:
        if not _is_type_checking(statement):
            yield from walk(statement)


SPLIT = {
    "agents/records": (
        "Records of agents and of one call: frozen, and importing nothing heavy.",
        """
        Agent Bounds EXIT_GRACE Prompt Call Usage Facts Reply""",
    ),
    "run/records": (
        "Records of a run of any kind of loop: commands, quality gates, its end.",
        """
        Gate Command Ran GateResult Gates Ending""",
    ),
    "run/setup": ("What settings give a loop of any kind: its agent, its limits, its hooks.", "Budget Hook Setup"),
    "loops/procedure/model": (
        "A procedure: its phases and everything that one run of it needs.",
        """
        PHASES Fragment Phase Context Procedure""",
    ),
}


def split(olds: list[str], rest: str) -> None:
    """Give the names of these modules to several new ones; names that SPLIT does not know go to `rest`."""
    owner = {name: new for new, (_, names) in SPLIT.items() for name in names.split()}
    texts: dict[str, list[str]] = collections.defaultdict(list)
    used: dict[str, set[str]] = collections.defaultdict(set)
    plain: list[str] = []
    plan_names: dict[tuple[str, str], tuple[str, str]] = {}
    for old in olds:
        source = Source(file_of(old))
        for index, node in enumerate(source.tree.body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                line = ast.unparse(node)
                for alias in node.names if isinstance(node, ast.ImportFrom) and "rooda" in line else ():
                    plan_names.setdefault((dotted(old), alias.name), (node.module or "", alias.name))
                if not any(dotted(each) in line for each in olds):
                    plain.append(line)
                continue
            mine = [*top_names(ast.Module([node], []))]
            if not mine:
                continue
            for name in mine:
                owner.setdefault(name, rest)
                plan_names[dotted(old), name] = (dotted(owner[name]), name)
            texts[owner[mine[0]]].append(_piece(source, index))
            used[owner[mine[0]]] |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    used[owner[mine[0]]] |= {*re.findall(r"\w+", each.value)} & {*owner}
    for new, pieces in texts.items():
        path = file_of(new)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [*plain]
        lines += [
            f"from {dotted(owner[name])} import {name}" for name in sorted(used[new]) if owner.get(name, new) != new
        ]
        if path.exists():
            text = path.read_text() + "\n\n" + "\n".join(pieces)
            head, _, tail = text.partition('"""\n')
            text = head + '"""\n\n' + "\n".join(lines) + "\n" + tail
        else:
            text = f'"""{SPLIT[new][0]}"""\n\n' + "\n".join(lines) + "\n\n\n" + "\n".join(pieces)
        path.write_text(text)
    for old in olds:
        git("rm", "-qf", "--cached", f"rooda/{old}.py")
        file_of(old).unlink()
    everywhere(Plan({dotted(old): dotted(old) for old in olds}, plan_names), {})


def main(arguments: list[str]) -> int:
    verb, table, *rooms = arguments
    every = rows(table)
    if verb == "move":
        move(every, rooms)
    elif verb == "merge":
        merge(every, rooms)
    elif verb == "split":
        split(["terms", "model"], "agents/records")
    elif verb == "check":
        merge(every, rooms or sorted({row.new.partition("/")[0] for row in every}), only_check=True)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
