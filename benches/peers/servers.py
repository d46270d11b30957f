"""Private servers on 127.0.0.1, stopped by their own process id when the run ends."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# The settings of somebody else's node are none of ours.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("IDGEN_")}
JAVA = Path("target/bench/peers/java")
# How long a server may take until it answers, and until it has ended, in seconds.
PATIENCE = 60


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def processor_seconds(pid):
    """What the process has used of the processors so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def call(*command, **options):
    """Runs a program to its end; what it printed. Its errors end the run."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1]}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def answer(url):
    """Status and body of a GET; status 0 where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Servers:
    """All servers of a run, with their folder. Use it in a `with`."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="idgen-peers-"))
        self.running = {}
        return self

    def __exit__(self, *_):
        for name in reversed(list(self.running)):
            self.stop(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, command, ready, environment=None):
        """Starts a server, and waits until `ready()` is true."""
        log = open(self.folder / f"{name}.log", "ab")
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=ENVIRONMENT | (environment or {}),
        )
        log.close()
        self.running[name] = child
        end = time.monotonic() + PATIENCE
        while not ready():
            if child.poll() is not None or time.monotonic() > end:
                text = (self.folder / f"{name}.log").read_text(errors="replace")
                raise RuntimeError(f"{name} does not start:\n{text[-3000:]}")
            time.sleep(0.05)

    def stop(self, name, kill=False):
        child = self.running.pop(name)
        child.kill() if kill else child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            print(f"peers: {name} does not end, so it is killed", file=sys.stderr)
            child.kill()
            child.wait()

    def pid(self, name):
        return self.running[name].pid

    # MariaDB and Redis

    def mariadb(self):
        data, temporary = self.folder / "mariadb", self.folder / "tmp"
        temporary.mkdir()
        call("mariadb-install-db", "--no-defaults", "--user=root", "--skip-test-db",
             "--auth-root-authentication-method=normal", f"--datadir={data}",
             f"--tmpdir={temporary}")
        self.sql_port = free_port()
        # Durable as by default: every commit reaches the disk before it is told.
        self.start("mariadb", [
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}",
            f"--tmpdir={temporary}", f"--socket={self.folder}/s.sock",
            f"--pid-file={self.folder}/mariadb.pid", "--bind-address=127.0.0.1",
            f"--port={self.sql_port}", "--skip-log-bin", "--innodb-buffer-pool-size=64M",
        ], lambda: self.sql_works())

    def sql_works(self):
        try:
            return self.sql("SELECT 1").strip() == "1"
        except RuntimeError:
            return False

    def sql_client(self, program):
        return [program, "--no-defaults", "--host=127.0.0.1", "--protocol=tcp", "--user=root",
                f"--port={self.sql_port}"]

    def sql(self, statements, database="mysql"):
        return call(*self.sql_client("mariadb"), "--batch", "--skip-column-names", database,
                    input=statements)

    def redis(self):
        self.redis_port = free_port()
        self.start("redis", [
            "redis-server", "--bind", "127.0.0.1", "--port", str(self.redis_port), "--dir",
            str(self.folder), "--appendonly", "yes", "--save", "",
        ], lambda: self.port_open(self.redis_port))

    @staticmethod
    def port_open(port):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    # Java

    def java(self, main, *arguments):
        """The command line of one of our Java programs, and its environment."""
        classes = f"{JAVA}/classes:{JAVA}/dependency/*"
        if "PEERS_HELPER" in os.environ:
            classes += f":{os.environ['PEERS_HELPER']}"
        url = f"jdbc:mariadb://127.0.0.1:{self.sql_port}/peers"
        return ["java", "-Xms512m", "-Xmx512m", "-cp", classes, f"peers.{main}",
                *map(str, arguments)], {"PEERS_JDBC": url}

    def leaf(self):
        self.leaf_port = free_port()
        command, environment = self.java(
            "LeafServer", "--server.address=127.0.0.1", f"--server.port={self.leaf_port}")
        self.start("leaf", command, lambda: self.port_open(self.leaf_port), environment)

    def leaf_url(self, key):
        return f"http://127.0.0.1:{self.leaf_port}/api/segment/get/{key}"


class IdGen:
    """The nodes of an IdGen cluster on those stores. `name` is that of its first node."""

    def __init__(self, servers, program):
        self.servers, self.program = servers, program
        self.environment = {
            "IDGEN_ADMIN_TOKEN": "only-for-this-run-0123456789",
            "IDGEN_MYSQL": f"mysql://root@127.0.0.1:{servers.sql_port}/idgen",
            "IDGEN_REDIS": f"redis://127.0.0.1:{servers.redis_port}",
        }
        self.ports = {}
        self.compat = "--compat-leaf" in call(program, "serve", "--help")
        servers.sql("CREATE DATABASE idgen")
        self.command("schema", "apply")

    def start(self, name):
        ports = self.ports.setdefault(name, [free_port() for _ in range(3)])
        arguments = ["--thrift", f"127.0.0.1:{ports[0]}", "--http", f"127.0.0.1:{ports[1]}"]
        if self.compat:
            arguments += ["--compat-addr", f"127.0.0.1:{ports[2]}", "--compat-leaf", "on"]
        data = self.servers.folder / name
        self.servers.start(
            name, [self.program, "serve", "--data", str(data), *arguments],
            lambda: answer(f"http://127.0.0.1:{ports[1]}/readyz")[0] == 200,
            self.environment)

    def thrift(self, name):
        return f"127.0.0.1:{self.ports[name][0]}"

    def leaf_url(self, name, key):
        return f"http://127.0.0.1:{self.ports[name][2]}/api/segment/get/{key}"

    def command(self, *arguments, node=None):
        """One of the commands of the program, which may talk to a node."""
        environment = ENVIRONMENT | self.environment
        if node:
            environment["IDGEN_URL"] = f"http://127.0.0.1:{self.ports[node][1]}"
        return call(self.program, *arguments, env=environment)

    def ids(self, node, kind, count):
        return list(map(int, self.command("get", kind, "-n", str(count), node=node).split()))
