"""A PostgreSQL server for tests."""

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

PASSWORD = "s3cret-Pass"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def postgres():
    """A private server on loopback with a password; its URL."""
    found = [shutil.which("initdb"), *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")))]
    initdb = next(filter(None, found), None)
    if initdb is None:
        pytest.skip("NO POSTGRESQL: initdb is not installed, so PostgreSQL is not tested")
    binaries = Path(initdb).resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    data, secret, port = folder / "data", folder / "password", free_port()
    secret.write_text(PASSWORD)
    user = {}
    if folder.owner() == "root":  # PostgreSQL refuses to run as root
        for path in (folder, secret):
            shutil.chown(path, "nobody")
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}

    def run(*command):
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, **user
        )
        return None if done.returncode == 0 else done.stdout

    control = (str(binaries / "pg_ctl"), "-D", str(data), "-w")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    login = ("-U", "steward", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C")
    try:
        failed = run(str(binaries / "initdb"), "-D", str(data), *login)
        failed = failed or run(*control, "-l", str(folder / "log"), "-o", options, "start")
        if failed:
            pytest.skip(f"NO POSTGRESQL: no server starts here: {failed[-300:]}")
        yield f"postgresql://steward:{PASSWORD}@127.0.0.1:{port}/postgres"
        run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
