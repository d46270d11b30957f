"""Measures IdGen beside Leaf and CosId; started by run.sh, described in docs/comparison.md."""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from servers import ENVIRONMENT, JAVA, IdGen, Servers, answer, call, processor_seconds

CONNECTIONS = 64
# The step of Leaf's example row; its core doubles it by itself under load.
LEAF_STEP = 2000
BURST_STEP = 1000
BURST_SECONDS = 2
# How long MariaDB is stopped under a burst, in seconds, and when.
STALL, STALL_AFTER = 1.0, 0.4
# Until the compilers of the JVM are done with what is hot: calls, or at most so many seconds.
LEAF_WARM_UP, LEAF_WARM_UP_MOST = 200_000, 50
# Seconds for which a generator in one process is warmed up.
ALONE_WARM_UP = 1.0
# Each generator of a process, and how the table names it.
IN_PROCESS = {
    "atomic": "a bare `AtomicLong` (no store, no uniqueness: the ceiling)",
    "cosid": "CosId `SegmentChainId`, all by default (step 10)",
    "cosid-1000": "CosId `SegmentChainId`, step 1000",
    "leaf": f"Leaf `SegmentIDGenImpl`, step {LEAF_STEP}, doubled by itself",
}
# Only where run.sh has found the helper.
LEASES = {
    "idgen-lease": "IdGen's Java helper, leases of 10 000 (its default)",
    "idgen-lease-million": "IdGen's Java helper, leases of 1 000 000",
}
if "PEERS_HELPER" in os.environ:
    IN_PROCESS |= LEASES
THREADS = (1, 2)
# How many ids the experiments about behaviour take of a generator, and of IdGen.
ALONE_IDS, IDGEN_IDS = 5000, 100_000
# Bursts on a cold key, and how the table names them.
TRIALS = {"burst": "stores as usual", "stall": f"MariaDB stopped for {STALL:.0f} s of it"}
DOCUMENT = Path("docs/comparison.md")
MARKERS = "<!-- peers:begin -->", "<!-- peers:end -->"
RESULTS = Path("target/bench/peers.json")


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def measure(client, server_pid, store_pids, seconds, warm_up):
    """Runs a load; its output, and the processor seconds a second of all who take part.

    The processor time is that of the middle of the load, without its start and end.
    """
    def used():
        return [processor_seconds(server_pid), sum(map(processor_seconds, store_pids)),
                processor_seconds(load.pid)]

    load = subprocess.Popen(client, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        time.sleep(warm_up + 0.1 * seconds)
        begin, before = time.monotonic(), used()
        time.sleep(0.8 * seconds)
        spent = [after - first for after, first in zip(used(), before)]
        share = [each / (time.monotonic() - begin) for each in spent]
        output, _ = load.communicate(timeout=60)
    finally:
        load.kill()
        load.wait()
    return output, share


def wrk(url, seconds):
    return ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "5s",
            "-s", "benches/peers/report.lua", url]


def turn(result, share):
    """One measured turn of a server, from the tool's report."""
    rate = result["rate"]
    micros = [each / rate * 1e6 if rate else None for each in share]
    keep = ("rate", "p50_us", "p99_us", "p999_us", "max_us", "errors")
    return {key: result[key] for key in keep} | dict(
        zip(("server_us", "stores_us", "client_us"), micros))


def http_turn(url, server_pid, store_pids, seconds):
    """wrk, after a second of it that does not count."""
    subprocess.run(wrk(url, 1), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    output, share = measure(wrk(url, seconds), server_pid, store_pids, seconds, 0)
    return turn(read_wrk(output), share)


def read_wrk(output):
    result = json.loads(output.strip().splitlines()[-1])
    errors = result["status_errors"] + result["other_errors"]
    ids = result["requests"] - result["status_errors"]
    return result | {"errors": errors, "rate": ids / result["duration_us"] * 1e6}


def thrift_turn(idgen, node, kind, server_pid, store_pids, seconds):
    command = [idgen.program, "bench", "--node", idgen.thrift(node), "--type", kind,
               "--connections", str(CONNECTIONS), "--seconds", str(seconds), "--json"]
    output, share = measure(command, server_pid, store_pids, seconds, 1)
    result = json.loads(output)
    return turn(result | {"rate": result["requests_per_s"]}, share)


def in_process(servers, idgen, name, threads, seconds):
    command, environment = servers.java("InProcess", name, threads, ALONE_WARM_UP, seconds)
    environment["PEERS_THRIFT"] = idgen.thrift("idgen")
    return json.loads(call(*command, env=ENVIRONMENT | environment))


def prepare(servers, options):
    """The stores with the rows of all; the servers."""
    keys = ["main", "inprocess"]
    rows = [(key, LEAF_STEP) for key in keys]
    rows += [(f"{trial}{n}", BURST_STEP) for trial in TRIALS for n in range(options.rounds)]
    leaf = ", ".join(f"('{key}', 1, {step})" for key, step in rows)
    cosid = ", ".join(f"('peers.{key}')" for key in [*keys, "inprocess1000"])
    servers.sql("CREATE DATABASE peers")
    # The tables as each project's own documentation has them, with the columns in use.
    servers.sql(f"""
        CREATE TABLE leaf_alloc (
            biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL,
            step INT NOT NULL, description VARCHAR(256), update_time DATETIME(3));
        INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES {leaf};
        -- The published core asks for it in capitals.
        CREATE VIEW LEAF_ALLOC AS SELECT * FROM leaf_alloc;
        CREATE TABLE cosid (
            name VARCHAR(100) NOT NULL PRIMARY KEY, last_max_id BIGINT NOT NULL DEFAULT 0,
            last_fetch_time BIGINT NOT NULL DEFAULT 0);
        INSERT INTO cosid (name) VALUES {cosid};""", "peers")
    idgen = IdGen(servers, options.program)
    idgen.start("idgen")
    for kind in ("strict", "segment"):
        idgen.command("type", "add", kind, "--mode", kind, node="idgen")
    for number in range(options.rounds):
        for trial in TRIALS:
            for way in ("http", "thrift"):
                idgen.command("type", "add", f"{trial}-{way}-{number}", "--mode", "segment",
                              "--min-range", str(BURST_STEP), node="idgen")
    servers.leaf()
    return idgen


def contenders(servers, idgen, seconds):
    """Each server row: its name, and a function that makes one turn."""
    stores = [servers.pid("mariadb"), servers.pid("redis")]
    leaf, node = servers.pid("leaf"), servers.pid("idgen")
    rows = {"Leaf segment, HTTP": lambda: http_turn(
        servers.leaf_url("main"), leaf, stores, seconds)}
    if idgen.compat:
        for kind in ("segment", "strict"):
            rows[f"IdGen `{kind}`, HTTP (Leaf's route)"] = lambda kind=kind: http_turn(
                idgen.leaf_url("idgen", kind), node, stores, seconds)
    for kind in ("segment", "strict"):
        rows[f"IdGen `{kind}`, Thrift"] = lambda kind=kind: thrift_turn(
            idgen, "idgen", kind, node, stores, seconds)
    return rows


def speed(servers, idgen, options, notes):
    """All rounds: server turns, bursts, generators in one process; one after the other."""
    rows = contenders(servers, idgen, options.seconds)
    warm_up(servers, notes)
    served = {name: [] for name in rows}
    bursts = {}
    alone = {f"{name}/{threads}": [] for name in IN_PROCESS for threads in THREADS}
    for number in range(options.rounds):
        # Another order every round, so that none is always measured after the same one.
        names = list(rows)
        names = names[number % len(names):] + names[:number % len(names)]
        for name in names:
            result = rows[name]()
            served[name].append(result)
            say(f"round {number + 1}: {name}: {result['rate']:.0f}/s, {result['errors']} errors")
        for trial, label in TRIALS.items():
            for name, result in burst(servers, idgen, trial, number):
                bursts.setdefault(f"{name}; {label}", []).append(result)
                say(f"round {number + 1}: {trial}: {name}: {result}")
        for label, results in alone.items():
            name, threads = label.split("/")
            results.append(in_process(servers, idgen, name, threads, options.seconds / 4))
            say(f"round {number + 1}: in process: {label}: {results[-1]}")
    return served, bursts, alone


def warm_up(servers, notes):
    say("warming up Leaf")
    calls, end = 0, time.monotonic() + LEAF_WARM_UP_MOST
    while calls < LEAF_WARM_UP and time.monotonic() < end:
        result = read_wrk(call(*wrk(servers.leaf_url("main"), 3)))
        calls += result["requests"]
    say(f"{calls} calls, {result['rate']:.0f}/s in the last seconds")
    if calls < LEAF_WARM_UP:
        notes.append(f"Leaf had only {calls} calls of warm-up in {LEAF_WARM_UP_MOST} s, instead of "
                     f"{LEAF_WARM_UP}: the machine was busy, and its figures are too low.")


def burst(servers, idgen, trial, number):
    """64 connections at once on a key that nobody has asked for yet, of a step of 1000."""
    clients = [("Leaf, HTTP", wrk(servers.leaf_url(f"{trial}{number}"), BURST_SECONDS))]
    if idgen.compat:
        url = idgen.leaf_url("idgen", f"{trial}-http-{number}")
        clients.append(("IdGen `segment`, HTTP", wrk(url, BURST_SECONDS)))
    # `bench` does not count the first second, and that is what this is about.
    clients.append(("IdGen `segment`, Thrift", [
        idgen.program, "verify", "--node", idgen.thrift("idgen"), "--type",
        f"{trial}-thrift-{number}", "--clients", str(CONNECTIONS), "--seconds",
        str(BURST_SECONDS), "--json"]))
    for name, client in clients:
        load = subprocess.Popen(client, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True)
        try:
            if trial == "stall":
                time.sleep(STALL_AFTER)
                os.kill(servers.pid("mariadb"), signal.SIGSTOP)
                time.sleep(STALL)
                os.kill(servers.pid("mariadb"), signal.SIGCONT)
            output, _ = load.communicate(timeout=60)
        finally:
            os.kill(servers.pid("mariadb"), signal.SIGCONT)
            load.kill()
            load.wait()
        if "wrk" in client[0]:
            result = read_wrk(output)
            longest = result["max_us"] / 1000
            calls = result["requests"]
        else:
            result = json.loads(output)
            longest = result["longest_call_ms"]
            calls = result["calls"] + result["errors"]
        yield name, {"calls": calls, "errors": result["errors"], "longest_ms": longest}


def of_generator(servers, name, table, column, row):
    """The same for a generator in processes of our own."""
    def java(*arguments):
        command, environment = servers.java("Behaviours", *arguments)
        return list(map(int, call(*command, env=ENVIRONMENT | environment).split()))

    out_of_order = java("order", name, ALONE_IDS)[0]
    first = java("take", name, 10)
    backup = servers.sql(f"SELECT {column} FROM {table} WHERE {row}", "peers").strip()
    second = java("take", name, ALONE_IDS)
    servers.sql(f"UPDATE {table} SET {column} = {backup} WHERE {row}", "peers")
    third = java("take", name, ALONE_IDS)
    return {"calls": ALONE_IDS, "out_of_order": out_of_order,
            "burnt_at_restart": second[0] - first[-1] - 1,
            "twice_after_restore": len(set(second).intersection(third))}


def behaviours(servers, idgen):
    """What each does with two nodes, at a restart and after a restore."""
    say("behaviours")
    results = {
        "leaf": of_generator(servers, "leaf", "leaf_alloc", "max_id", "biz_tag = 'inprocess'"),
        "cosid": of_generator(servers, "cosid", "cosid", "last_max_id",
                              "name = 'peers.inprocess'"),
    }

    idgen.start("second")
    kinds = {}
    for kind in ("strict", "segment"):
        done = subprocess.run(
            [idgen.program, "verify", "--node", idgen.thrift("idgen"), "--node",
             idgen.thrift("second"), "--type", kind, "--order", "strict", "--clients", "8",
             "--seconds", "2", "--json"], capture_output=True, text=True, timeout=60)
        result = json.loads(done.stdout)
        kinds[kind] = {"calls": result["calls"], "out_of_order": result["order_violations"],
                       "twice": result["duplicates"]}
    servers.stop("second")

    for kind, result in kinds.items():
        for how, kill in (("stop", False), ("kill", True)):
            last = idgen.ids("idgen", kind, 10)[-1]
            servers.stop("idgen", kill)
            idgen.start("idgen")
            result[f"burnt_at_{how}"] = idgen.ids("idgen", kind, 1)[0] - last - 1

    # The node is killed, the database goes back to the backup, the node comes back.
    backup = call(*servers.sql_client("mariadb-dump"), "--routines", "--databases", "idgen")
    issued = {kind: set(idgen.ids("idgen", kind, IDGEN_IDS)) for kind in kinds}
    servers.stop("idgen", kill=True)
    servers.sql("DROP DATABASE idgen; " + backup)
    idgen.start("idgen")
    for kind, result in kinds.items():
        again = idgen.ids("idgen", kind, IDGEN_IDS)
        result["twice_after_restore"] = len(issued[kind].intersection(again))
    return results | {"idgen": kinds}


# The tables


def number(value):
    """Three digits that count, with spaces between thousands."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        digits = len(str(int(abs(value))))
        return f"{round(value, 3 - digits):,.0f}".replace(",", " ")
    return f"{value:.3g}"


def spread(results, key, scale=1):
    """The median of all rounds, and the lowest and the highest."""
    values = [result[key] / scale for result in results if result[key] is not None]
    if not values:
        return "–"
    return (f"{number(statistics.median(values))} "
            f"({number(min(values))} to {number(max(values))})")


def line(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def server_table(served):
    yield line("server", "ids/s", "p50 ms", "p99 ms", "p99.9 ms", "longest ms", "errors",
               "server µs/id", "stores µs/id", "load µs/id")
    yield line("---", *["--:"] * 9)
    for name, results in served.items():
        yield line(name, spread(results, "rate"),
                   *(spread(results, f"{key}_us", 1000) for key in ("p50", "p99", "p999", "max")),
                   sum(result["errors"] for result in results),
                   *(spread(results, f"{key}_us") for key in ("server", "stores", "client")))


def alone_table(alone):
    yield line("generator", *(f"ids/s, {n} thread{'s'[:n - 1]}" for n in THREADS),
               "calls without an id", "longest 64 ids, ms")
    yield line("---", *["--:"] * (len(THREADS) + 2))
    for name, label in IN_PROCESS.items():
        each = [alone[f"{name}/{threads}"] for threads in THREADS]
        every = [result for results in each for result in results]
        yield line(label, *(spread(results, "ids_per_s") for results in each),
                   number(sum(result["errors"] for result in every)),
                   number(max(result["longest_stretch_us"] for result in every) / 1000))
    for name, label in LEASES.items():
        if name not in IN_PROCESS:
            yield line(label, *["not in this version"] * len(THREADS), "–", "–")


def burst_table(bursts):
    yield line(f"{CONNECTIONS} callers at once, key not in memory, step {BURST_STEP}", "calls",
               "without an id", "longest call, ms")
    yield line("---", *["--:"] * 3)
    for name, results in bursts.items():
        yield line(name, spread(results, "calls"), spread(results, "errors"),
                   spread(results, "longest_ms"))


def behaviour_table(seen):
    leaf, cosid, idgen = seen["leaf"], seen["cosid"], seen["idgen"]
    strict, segment = idgen["strict"], idgen["segment"]
    yield line("measured", "Leaf", "CosId", "IdGen `strict`", "IdGen `segment`")
    yield line(*["---"] * 5)
    yield line("calls out of order, two nodes", *(
        f"{number(each['out_of_order'])} of {number(each['calls'])}"
        for each in (leaf, cosid, strict, segment)))
    yield line("ids lost by a clean stop and start", number(leaf["burnt_at_restart"]),
               number(cosid["burnt_at_restart"]), number(strict["burnt_at_stop"]),
               number(segment["burnt_at_stop"]))
    yield line("ids lost by a kill and start", number(leaf["burnt_at_restart"]),
               number(cosid["burnt_at_restart"]), number(strict["burnt_at_kill"]),
               number(segment["burnt_at_kill"]))
    yield line("ids issued twice after the database was restored from an older backup",
               f"{number(leaf['twice_after_restore'])} of {number(ALONE_IDS)}",
               f"{number(cosid['twice_after_restore'])} of {number(ALONE_IDS)}",
               *(f"{number(each['twice_after_restore'])} of {number(IDGEN_IDS)}"
                 for each in (strict, segment)))


def version(pattern, *command):
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1) if found else "?"


def jar(name):
    found = [path.stem for path in (JAVA / "dependency").glob(f"{name}-[0-9]*.jar")]
    return found[0].removeprefix(f"{name}-") if found else "?"


def facts(options, started):
    commit = version(r"(\w+)", "git", "rev-parse", "--short", "HEAD")
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "started": started.strftime("%Y-%m-%d %H:%M UTC"), "rounds": options.rounds,
        "seconds": options.seconds, "connections": CONNECTIONS, "commit": commit,
        "cpus": os.cpu_count(), "cpu": cpu.group(1).strip() if cpu else "?",
        "load_before": os.getloadavg()[0], "note": options.note,
        "versions": {
            "idgen": version(r"(\d\S*.*)", options.program, "--version"),
            "leaf-core": jar("leaf-core"), "cosid-core": jar("cosid-core"),
            "spring-boot": jar("spring-boot"), "tomcat": jar("tomcat-embed-core"),
            "java": version(r'version "(.*?)"', "java", "-version"),
            "mariadb": version(r"(\d+\.\d+\.\d+)-MariaDB", "mariadbd", "--version"),
            "redis": version(r"v=(\S+)", "redis-server", "--version"),
            "wrk": version(r"wrk (\S+)", "wrk", "-v"),
        },
    }


def report(result):
    """The Markdown between the markers."""
    known, notes = result["facts"], result["notes"]
    versions = ", ".join(f"{name} {value}" for name, value in known["versions"].items())
    lines = [
        f"Run of {known['started']}: {known['rounds']} rounds of {known['seconds']} s a row, "
        f"{known['connections']} connections, {known['cpus']} cores ({known['cpu']}), load "
        f"average {known['load_before']:.1f} before it, checkout at {known['commit']}. {versions}. "
        "Medians of the rounds, with the lowest and the highest.",
    ]
    if known["note"]:
        lines += ["", f"**{known['note']}**"]
    for note in notes:
        lines += ["", note]
    for heading, table in (
        ("Servers on loopback, one id per call", server_table(result["servers"])),
        ("In one process, no network", alone_table(result["in_process"])),
        ("A burst on a cold key", burst_table(result["bursts"])),
        ("Behaviours", behaviour_table(result["behaviours"])),
    ):
        lines += ["", f"### {heading}", "", *table]
    return "\n".join(lines)


def publish(text):
    document = DOCUMENT.read_text()
    before, begin, rest = document.partition(MARKERS[0])
    _, end, after = rest.partition(MARKERS[1])
    if not begin or not end:
        raise RuntimeError(f"{DOCUMENT} lacks a marker")
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    say(f"written into {DOCUMENT}")


def main():
    parser = argparse.ArgumentParser(prog="benches/peers/run.sh")
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 8))
    parser.add_argument("--seconds", type=int, default=4, choices=range(1, 31))
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--note", default="")
    options = parser.parse_args()
    options.program = os.environ["IDGEN"]
    if "/" in options.program:
        options.program = str(Path(options.program).resolve())
    # So that the servers are stopped when the run is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    begin = time.monotonic()
    known = facts(options, datetime.now(timezone.utc))
    notes = []
    with Servers() as servers:
        say("starting the servers")
        servers.mariadb()
        servers.redis()
        idgen = prepare(servers, options)
        status, body = answer(servers.leaf_url("main"))
        if status != 200:
            raise RuntimeError(f"Leaf answers {status}: {body[:500]}")
        if idgen.compat:
            status, body = answer(idgen.leaf_url("idgen", "segment"))
            if status not in (200, 404):
                raise RuntimeError(f"IdGen answers {status} on Leaf's route: {body[:500]}")
            idgen.compat = status == 200
        if not idgen.compat:
            notes.append("This program of IdGen has no HTTP routes for Leaf's clients, so these "
                         "rows are left out.")
        served, bursts, alone = speed(servers, idgen, options, notes)
        seen = behaviours(servers, idgen)
    result = {"facts": known, "notes": notes, "servers": served, "bursts": bursts,
              "in_process": alone, "behaviours": seen}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    say(f"{time.monotonic() - begin:.0f} s; all figures are in {RESULTS}")
    text = report(result)
    print(text)
    if options.publish:
        publish(text)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"peers: {error}")
