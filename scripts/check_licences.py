"""Are the licences of all dependencies allowed by deny.toml?

A licence expression passes when one of its alternatives (OR) has only allowed
parts (AND). Exits 1 and names the crate otherwise.
"""

import json
import re
import subprocess
import sys


def allowed_licences(text):
    """The strings of the list `allow` in the section [licenses]."""
    section = text.split("[licenses]", 1)[1].split("\n[", 1)[0]
    entries = re.search(r"allow\s*=\s*\[(.*?)\]", section, re.S).group(1)
    return set(re.findall(r'"([^"]+)"', entries))


def passes(expression, allowed):
    """Whether `expression` (SPDX, or the older form with slashes) is allowed."""
    expression = expression.replace("/", " OR ")
    words = re.findall(r"[()]|[^\s()]+(?:\s+WITH\s+[^\s()]+)?", expression)
    python = []
    for word in words:
        if word in ("(", ")"):
            python.append(word)
        elif word in ("AND", "OR"):
            python.append(word.lower())
        else:
            python.append(str(re.sub(r"\s+", " ", word) in allowed))
    # Only the words above can be in the expression by now.
    return eval(" ".join(python), {"__builtins__": {}})


def main():
    with open("deny.toml", encoding="utf-8") as file:
        allowed = allowed_licences(file.read())
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform",
         "x86_64-unknown-linux-gnu"],
        check=True, capture_output=True, text=True,
    )
    packages = json.loads(metadata.stdout)["packages"]
    bad = [
        f"{p['name']} {p['version']}: {p['license'] or 'no licence'}"
        for p in packages
        if not p["license"] or not passes(p["license"], allowed)
    ]
    for line in bad:
        print(f"check-licences: not allowed by deny.toml: {line}", file=sys.stderr)
    print(f"check-licences: {len(packages)} packages, {len(bad)} not allowed")
    return 1 if bad or len(packages) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
