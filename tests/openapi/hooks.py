"""What schemathesis cannot know: names that exist, and what must not be reached.

IDGEN_TYPES and IDGEN_INSTANCES name the types and the Redis instances of the node,
with commas between them; IDGEN_REDIS is the URL of a Redis for new ones.
"""

import itertools
import os
import re
import zlib

import schemathesis

TYPES = os.environ["IDGEN_TYPES"].split(",")
INSTANCES = os.environ["IDGEN_INSTANCES"].split(",")
REDIS = os.environ["IDGEN_REDIS"]
LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z")
TURNS = itertools.count()
URL = re.compile(r"rediss?(\+sentinel|\+cluster)?://")


def known(made_up, names):
    """For a legal name, in turns: each that exists, one that never does, and itself.

    Made-up names are often the same, so that they do exist once they were created.
    """
    if not isinstance(made_up, str) or not LEGAL.match(made_up):
        return made_up
    turns = [*names, "no-such-name", made_up]
    return turns[next(TURNS) % len(turns)]


@schemathesis.hook
def before_call(context, case, kwargs):
    """Every request passes here, whatever made it up."""
    path, query, body = case.path_parameters, case.query, case.body
    if path and "name" in path:
        names = INSTANCES if "/redis-instances" in case.operation.path else TYPES
        path["name"] = known(path["name"], names)
    if query and "to" in query:
        query["to"] = known(query["to"], INSTANCES)
    if isinstance(body, dict):
        if "to" in body:
            body["to"] = known(body["to"], INSTANCES)
        # No request may leave this machine.
        if isinstance(body.get("url"), str) and URL.match(body["url"]):
            body["url"] = f"{REDIS}/{zlib.crc32(body['url'].encode()) % 8 + 2}"
