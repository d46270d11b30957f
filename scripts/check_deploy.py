"""Checks deploy/ and the operations documents against the code and each other.

    check_deploy.py             every check; says each problem in a line, ends with 1
    check_deploy.py --queries   prints the dashboard's queries as a rules file, for promtool
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
DASHBOARD = DEPLOY / "grafana/idgen.json"
DOCUMENTS = [ROOT / "docs/runbooks.md", ROOT / "docs/operations.md"]
# Variables that Kubernetes makes for a Service `idgen`: named as a warning only.
NOT_SETTINGS = {"IDGEN_PORT", "IDGEN_SERVICE_HOST"}
# What ends after the drain (calls of the range store, ids that go back), in seconds.
AFTER_DRAIN = 3 + 3 + 3

problems = []


def problem(where, what):
    name = where.relative_to(ROOT) if isinstance(where, Path) else where
    problems.append(f"{name}: {what}")


def sources(folder, pattern):
    return "".join(path.read_text() for path in sorted((ROOT / folder).rglob(pattern)))


def anchors(path):
    """The anchors of the headings of a Markdown file, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    clean = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in clean}


def queries():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [(p["title"], t["expr"]) for p in panels for t in p.get("targets", [])]


def print_queries():
    variable = re.compile(r"\$__rate_interval|\$\w+")
    value = {"$__rate_interval": "1m"}
    rules = [
        {"record": f"q{n}", "expr": variable.sub(lambda m: value.get(m[0], ".*"), query)}
        for n, (_, query) in enumerate(queries())
    ]
    # JSON is YAML.
    print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))


def check_metrics():
    """Every metric that is named exists in the code."""
    known = set(re.findall(r'"(idgen_[a-z_]+)"', sources("src", "metrics.rs")))
    # Parts with a few metrics of their own make them where they are.
    known |= set(re.findall(r'(?:counter|Opts::new)\(\s*"(idgen_[a-z_]+)"', sources("src", "*.rs")))
    if len(known) < 30:
        problem("src", f"only {len(known)} metrics were found: has their place changed?")
    histograms = set(re.findall(r'HistogramOpts::new\(\s*"(idgen_[a-z_]+)"', sources("src", "*.rs")))
    known |= {name + part for name in histograms for part in ("_bucket", "_sum", "_count")}
    sql = set(re.findall(r"\bidgen_[a-z_]+", sources("procedures", "*.sql")))
    name = re.compile(r"\bidgen_[a-z_]+")
    for title, query in queries():
        for metric in set(name.findall(query)) - known:
            problem(DASHBOARD, f"panel {title!r}: there is no metric {metric}")
    rules = [DEPLOY / "prometheus/alerts.yaml", DEPLOY / "prometheus/alerts_test.yaml"]
    for path in rules:
        for metric in sorted(set(name.findall(path.read_text())) - known):
            problem(path, f"there is no metric {metric}")
    for path in DOCUMENTS:
        for metric in sorted(set(name.findall(path.read_text())) - known - sql):
            problem(path, f"there is no metric, table or procedure {metric}")
    documented = set(name.findall((ROOT / "docs/metrics.md").read_text()))
    shown = {metric for _, query in queries() for metric in name.findall(query)}
    base = {re.sub("_(bucket|sum|count)$", "", m) if m not in documented else m for m in shown}
    for metric in sorted(documented - base):
        problem(DASHBOARD, f"{metric} of docs/metrics.md is on no panel")


def check_settings():
    """Every IDGEN_ variable that is named exists: a node refuses others."""
    known = set(re.findall(r'"(IDGEN_[A-Z_]+)"', sources("src", "*.rs"))) | NOT_SETTINGS
    files = [path for path in DEPLOY.rglob("*") if path.is_file()] + DOCUMENTS
    for path in files:
        for name in sorted(set(re.findall(r"\bIDGEN_[A-Z_]*[A-Z]", path.read_text())) - known):
            problem(path, f"there is no variable {name}")


def check_links():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            to = (path.parent / name).resolve() if name else path
            if not to.exists():
                problem(path, f"the link {target} leads nowhere")
            elif anchor and anchor not in anchors(to):
                problem(path, f"the link {target}: no such heading")


def check_alerts(yaml):
    path = DEPLOY / "prometheus/alerts.yaml"
    rules = [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]
    names = {rule["alert"] for rule in rules}
    tests = yaml.safe_load((DEPLOY / "prometheus/alerts_test.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    runbooks = ROOT / "docs/runbooks.md"
    for rule in rules:
        name = rule["alert"]
        if rule["labels"].get("severity") not in ("critical", "warning"):
            problem(path, f"{name}: severity must be critical or warning")
        if not rule["annotations"].get("summary"):
            problem(path, f"{name}: no summary")
        url = f"docs/runbooks.md#{name.lower()}"
        if rule["annotations"].get("runbook_url") != url:
            problem(path, f"{name}: runbook_url must be {url}")
        if name.lower() not in anchors(runbooks):
            problem(runbooks, f"no section for {name}")
        for fires in (True, False):
            if not any(c["alertname"] == name and bool(c["exp_alerts"]) == fires for c in cases):
                problem(path, f"{name}: no test in which it {'fires' if fires else 'is quiet'}")
    for name in set(re.findall(r"^#+ (Idgen\w+)$", runbooks.read_text(), re.M)) - names:
        problem(runbooks, f"a section for {name}, which is no alert")


def check_stops(yaml):
    """Whoever stops a node waits longer than its stop may take."""
    default = re.search(r'"node\.drain_ms".*?default: ([\d_]+)', sources("src/config", "node.rs"), re.S)
    drain = int(default[1]) / 1000
    needed = 2 * drain + AFTER_DRAIN
    unit = DEPLOY / "systemd/idgen.service"
    seconds = int(re.search(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.M)[1])
    if seconds < needed:
        problem(unit, f"TimeoutStopSec={seconds}: a stop may take {needed:.0f} s")
    path = DEPLOY / "docker/compose.yaml"
    for name, service in yaml.safe_load(path.read_text())["services"].items():
        if name.startswith("node-") and int(service["stop_grace_period"].rstrip("s")) < needed:
            problem(path, f"{name}: stop_grace_period: a stop may take {needed:.0f} s")
    path = DEPLOY / "kubernetes/deployment.yaml"
    pod = yaml.safe_load(path.read_text())["spec"]["template"]["spec"]
    waits = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    if pod["terminationGracePeriodSeconds"] < needed + waits:
        problem(path, f"terminationGracePeriodSeconds: a stop may take {needed + waits:.0f} s")


def check_kubernetes(yaml):
    folder = DEPLOY / "kubernetes"
    files = {path: list(yaml.safe_load_all(path.read_text())) for path in folder.glob("*.yaml")}
    objects = [(path, one) for path, all_of_it in files.items() for one in all_of_it]
    for path, one in objects:
        for field in ("apiVersion", "kind"):
            if not one.get(field):
                problem(path, f"an object without {field}")
        if one["kind"] not in ("Kustomization", "Namespace"):
            if one["metadata"].get("namespace") != "idgen":
                problem(path, f"{one['kind']} {one['metadata']['name']}: not in the namespace idgen")
    resources = files[folder / "kustomization.yaml"][0]["resources"]
    for path in sorted(set(resources) ^ {p.name for p in files}):
        if path not in ("kustomization.yaml", "secret.example.yaml", "schema-job.yaml"):
            problem(folder / "kustomization.yaml", f"{path} is listed and not there, or not listed")
    path = folder / "deployment.yaml"
    spec = files[path][0]["spec"]
    pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"]
    container = pod["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    if pod.get("enableServiceLinks") is not False:
        problem(path, "enableServiceLinks must be false: nodes refuse unknown IDGEN_ variables")
    routes = sources("src/front/http", "routes.rs")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        if f'"{get["path"]}"' not in routes or get["port"] not in ports:
            problem(path, f"{probe}: no address {get['path']}, or no port {get['port']}")
    names = {(one["kind"], one["metadata"]["name"]) for _, one in objects if "metadata" in one}
    for source in container["envFrom"]:
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if key in source and (kind, source[key]["name"]) not in names:
                problem(path, f"there is no {kind} {source[key]['name']}")
    config = files[folder / "configmap.yaml"][0]["data"]
    for key, port in (("IDGEN_THRIFT", "thrift"), ("IDGEN_HTTP", "http")):
        if not config[key].endswith(f":{ports[port]}"):
            problem(folder / "configmap.yaml", f"{key} is not the port {port} of the Deployment")
    for path, one in objects:
        spec = one.get("spec", {})
        selector = {"Service": spec.get("selector"), "NetworkPolicy": spec.get("podSelector")}
        selector = selector.get(one["kind"], spec.get("selector")) or {}
        selector = selector.get("matchLabels", selector)
        if not selector.items() <= labels.items():
            problem(path, f"{one['kind']} {one['metadata']['name']} selects no pod of the Deployment")
        if one["kind"] == "Service":
            for port in spec["ports"]:
                if port["targetPort"] not in ports:
                    problem(path, f"there is no port {port['targetPort']}")


def check_images():
    """Plain names, with a version."""
    for path in [DEPLOY / "docker/Dockerfile", *DEPLOY.rglob("*.yaml")]:
        for image in re.findall(r"^(?:FROM| *(?:- )?image:) +(\S+)", path.read_text(), re.M):
            if ":" not in image or image.endswith(":latest") or "/" in image:
                problem(path, f"image {image}: not a plain name with a version")


def main():
    if sys.argv[1:] == ["--queries"]:
        print_queries()
        return
    try:
        identifiers = [panel["id"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    except ValueError as error:
        sys.exit(f"check-deploy: {DASHBOARD.relative_to(ROOT)}: {error}")
    if len(set(identifiers)) < len(identifiers):
        problem(DASHBOARD, "two panels have the same id")
    check_metrics()
    check_settings()
    check_links()
    check_images()
    try:
        import yaml
    except ImportError:
        print("check-deploy: python3-yaml is missing: YAML files were not read", file=sys.stderr)
    else:
        try:
            for path in DEPLOY.rglob("*.yaml"):
                list(yaml.safe_load_all(path.read_text()))
        except yaml.YAMLError as error:
            sys.exit(f"check-deploy: {path.relative_to(ROOT)}: {error}")
        check_alerts(yaml)
        check_stops(yaml)
        check_kubernetes(yaml)
    for line in problems:
        print(f"check-deploy: {line}", file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
