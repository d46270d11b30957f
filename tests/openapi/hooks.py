"""What schemathesis cannot know: names that exist, and what must not be reached.

IDGEN_TYPES, IDGEN_INSTANCES and IDGEN_ACCOUNTS name the types, the Redis instances and
the accounts of the node, IDGEN_CREDENTIALS has ids of API tokens and sessions, all with
commas between them; IDGEN_REDIS is the URL of a Redis for new ones.
"""

import itertools
import os
import re
import zlib

import schemathesis

TYPES = os.environ["IDGEN_TYPES"].split(",")
INSTANCES = os.environ["IDGEN_INSTANCES"].split(",")
ACCOUNTS = os.environ["IDGEN_ACCOUNTS"].split(",")
CREDENTIALS = os.environ["IDGEN_CREDENTIALS"].split(",")
REDIS = os.environ["IDGEN_REDIS"]
# Where nothing listens: what an import from a database finds.
NO_DATABASE = "mysql://nobody@127.0.0.1:1/none"
LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z")
TURNS = itertools.count()
URL = re.compile(r"rediss?(\+sentinel|\+cluster)?://")
DATABASE = re.compile(r"\s*mysql:", re.IGNORECASE)


def known(made_up, names):
    """For a legal name, in turns: each that exists, one that never does, and itself.

    Made-up names are often the same, so that they do exist once they were created.
    """
    if not isinstance(made_up, str) or not LEGAL.match(made_up):
        return made_up
    turns = [*names, "no-such-name", made_up]
    return turns[next(TURNS) % len(turns)]


def names_of(path):
    """The names that are meant at the address `path`."""
    if path.startswith("/redis-instances"):
        return INSTANCES
    return ACCOUNTS if path.startswith("/accounts") else TYPES


@schemathesis.hook
def before_call(context, case, kwargs):
    """Every request passes here, whatever made it up."""
    path, query, body = case.path_parameters, case.query, case.body
    if path and "name" in path:
        path["name"] = known(path["name"], names_of(case.operation.path))
    if path and "id" in path:
        path["id"] = known(path["id"], CREDENTIALS)
    if query and "to" in query:
        query["to"] = known(query["to"], INSTANCES)
    if isinstance(body, dict):
        if "to" in body:
            body["to"] = known(body["to"], INSTANCES)
        # No request may leave this machine.
        if isinstance(body.get("url"), str) and URL.match(body["url"]):
            body["url"] = f"{REDIS}/{zlib.crc32(body['url'].encode()) % 8 + 2}"
        source = body.get("source")
        if isinstance(source, dict) and isinstance(source.get("url"), str):
            if DATABASE.match(source["url"]):
                source["url"] = NO_DATABASE
