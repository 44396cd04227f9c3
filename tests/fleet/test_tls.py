"""TLS by Temporal's own settings, against a listener that speaks nothing else."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.engine import Unreachable, no_connection
from rooda.fleet.port import Address
from tests.kit.link import copy
from tests.kit.temporal import Server as Dev
from tests.kit.workspace import Workspace


class Terminator:
    """Takes TLS connections on the loopback interface, and passes what they say on to a port without TLS."""

    def __init__(self, certificate: Path, key: Path, port: int) -> None:
        self._there, self.port, self.taken = port, 0, 0
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, key)
        self._context.set_alpn_protocols(["h2"])
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True).start()
        assert self._ready.wait(20)

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        async with await asyncio.start_server(self._meet, "127.0.0.1", 0, ssl=self._context) as server:
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._end.wait()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        theirs = await asyncio.open_connection("127.0.0.1", self._there)
        await asyncio.gather(copy(reader, theirs[1]), copy(theirs[0], writer))

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself; its key is `key.pem` next to it."""
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("needs openssl")
    words = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-addext", "basicConstraints=critical,CA:FALSE"]
    words += ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run(words, check=True, capture_output=True)
    return tmp_path / "cert.pem"


@pytest.fixture
def tls(server: Dev, certificate: Path) -> Iterator[Terminator]:
    found = Terminator(certificate, certificate.with_name("key.pem"), server.port)
    yield found
    found.end()


def test_FL_13_a_refused_login_is_not_taken_for_silence() -> None:
    words = (
        'call error after connection: Status { code: Unauthenticated, message: "Request unauthorized.", source: None }'
    )
    found = no_connection(Address("fleet.example.org:7233", "default"), words)
    assert "refuses this login" in found.what and not isinstance(found, Unreachable)
    assert isinstance(no_connection(Address("fleet.example.org:7233", "default"), "tcp connect error"), Unreachable)


def test_FL_13_tls_by_temporals_own_settings(bare: Workspace, tls: Terminator, certificate: Path) -> None:
    """Variables and configuration file of Temporal reach every command; a certificate nobody vouches for is refused."""
    address = f"temporal://127.0.0.1:{tls.port}/default"
    status = ("fleet", "status", "--fleet", address)
    trusting = {"TEMPORAL_TLS": "true", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(certificate)}
    found = bare.rooda(*status, env=bare.env | trusting)
    assert found.code == 0 and "Tasks:" in found.out and tls.taken
    plain = bare.rooda(*status)
    assert plain.code == 1 and "does not answer" in plain.err
    stranger = bare.rooda(*status, env=bare.env | {"TEMPORAL_TLS": "true"})
    assert stranger.code == 1 and "with a certificate that this machine trusts" in stranger.err
    settings = Path(bare.path, "temporal.toml")
    settings.write_text(f'[profile.default.tls]\nserver_ca_cert_path = "{certificate}"\n')
    found = bare.rooda(*status, env=bare.env | {"TEMPORAL_CONFIG_FILE": str(settings)})
    assert found.code == 0 and "Tasks:" in found.out
    checked = bare.rooda("fleet", "doctor", "--fleet", address, env=bare.env | trusting, timeout=90)
    assert "TLS" in checked.out and "FAIL  address" not in checked.out
