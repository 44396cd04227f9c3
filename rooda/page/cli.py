"""`rooda page`: serves a live page that shows all loops and tasks of the user."""

import os
import shlex
import sys

import click

from rooda.base import dirs, files
from rooda.errors import OK, UsageProblem
from rooda.page.html import document, tag
from rooda.settings.where import where

NEEDED = ("starlette", "uvicorn", "sse_starlette")


@click.command(short_help="Serve a live page with all loops and tasks.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port; default: any free one.")
@click.option("--host", default="127.0.0.1", metavar="ADDR", help="Address to listen on.", show_default=True)
@click.option("--allow", is_flag=True, help="Allow an address that other machines can reach; the page has no TLS.")
@click.option("--no-browser", is_flag=True, help="Don't open a browser.")
@click.pass_context
def page(ctx: click.Context, port: int, host: str, allow: bool, no_browser: bool) -> int:
    """Serve a live page with all open loops and tasks of this user and the newest finished runs, until Ctrl+C.

    The printed address contains a token: anyone who has it can read and control your loops.
    """
    _require_extra()
    from rooda.page import listening
    from rooda.page.guard import Guard, is_loopback

    local = is_loopback(host)
    if not local and not allow:
        raise UsageProblem(f"Other machines can reach {host}, and the page has no TLS; if you want that, add --allow.")
    socket = listening.listen(host, port)
    guard = Guard(host, socket.getsockname()[1], local)
    from rooda.page.server import serve

    path = _door(guard.door)
    try:
        serve(where(ctx), guard, socket, lambda: _say(guard.door, path, no_browser))
    finally:
        if path:
            files.remove(path)
    return OK


def _require_extra() -> None:
    """Raise UsageProblem if the libraries of the page are not installed."""
    from importlib.util import find_spec

    if not all(map(find_spec, NEEDED)):
        hint = "Install it: pip install 'rooda[page]' (in a checkout of rooda: pip install '.[page]')"
        raise UsageProblem("The page needs rooda's extra `page`.", hint)


def _say(address: str, path: str, no_browser: bool) -> None:
    click.echo(f"Page: {address}")
    click.echo("Anyone who has this address can read and control your loops. Ctrl+C ends the page; loops continue.")
    sys.stdout.flush()
    if path and not no_browser and (command := _browser()):
        from rooda.page import listening

        listening.open_browser([*command, path])


def _browser() -> list[str]:
    """Return the command that opens a file in the user's browser; [] if there is probably no browser."""
    if browser := os.environ.get("BROWSER", "").partition(os.pathsep)[0]:
        return shlex.split(browser.replace("%s", ""))
    if sys.platform == "darwin":
        return ["open"] if sys.stdout.isatty() else []
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return ["xdg-open"] if has_screen and sys.stdout.isatty() else []


def _door(address: str) -> str:
    """Write a file that redirects to the page, to keep the token off command lines; return its path, "" on failure."""
    leads = tag("meta", http_equiv="refresh", content=f"0;url={address}")
    body = tag("p", tag("a", "Open the page", href=address, rel="noreferrer"))
    try:
        path = os.path.join(dirs.make_state("page"), f"open-{os.getpid()}.html")
        files.replace(path, document("rooda", body, head=leads).encode(), 0o600)
    except (OSError, UsageProblem):
        return ""
    return path
