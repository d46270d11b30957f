/*
 * IdGen: unique 64-bit ids over Thrift.
 *
 * This file is the interface and its reference. One port speaks framed and
 * unframed transport, binary and compact protocol; the node finds out per
 * connection from the first bytes, so any Thrift client works as it comes.
 *
 * Two generations of methods live side by side:
 *
 *  - getId, getStrId, addNewId and echo are the original interface and stay
 *    compatible on the wire, byte for byte. They never raise: look at `res`.
 *  - nextId, nextIds, nextStringId, describeType and nodeStatus raise
 *    IdGenException, with a stable code and whether a retry helps.
 *
 * What holds for every call that hands out ids: an id of a type is handed out
 * at most once, ever. Gaps are normal, duplicates are not. For a type of mode
 * `strict`, a call that starts after another one has returned, through any node
 * of the cluster, gets a larger id. A call whose answer is lost (timeout, broken
 * connection) may have used up ids: just call again.
 *
 * Names of types follow the rule [A-Za-z0-9][A-Za-z0-9_.:-]{0,127}.
 * Every text is UTF-8. A message may have at most 64 KiB, unless the node is
 * configured otherwise.
 */

namespace cpp    idgen
namespace go     idgen
namespace java   idgen.thrift
namespace js     idgen
namespace lua    idgen
namespace netstd IdGen
namespace perl   IdGen
namespace php    IdGen
namespace py     idgen
namespace rb     IdGen
namespace rs     idgen

/** Highest count that one call of nextIds may ask for. */
const i32 MAX_COUNT = 100000

/** `res` of the original methods: done. */
const i32 RES_SUCCESS = 200
/** `res`: done in part. Reserved; no method of this version answers so. */
const i32 RES_PARTIAL = 201
/** `res`: the node is shutting down and does no more work. Ask another node. */
const i32 RES_NOT_WORKING = 550
/** `res`: the type has handed out its highest id; there is nothing left. */
const i32 RES_NO_CONTENT = 551
/** `res`: an argument is missing, empty or breaks a rule; `ext` names it. */
const i32 RES_BAD_PARAMETER = 552
/** `res`: every other failure, an unknown type included; `ext` tells which. */
const i32 RES_INNER_ERROR = 553

/** Answer of getId. */
struct ResLong {
  /** A RES_ code. */
  1: optional i32 res
  /** The id; -1 if `res` is not RES_SUCCESS. */
  2: optional i64 value
  /** On failure: code and message, as in "UNKNOWN_TYPE: no id type is called ...". Otherwise left out. */
  3: optional string ext
}

/** Answer of getStrId and echo. */
struct ResStr {
  /** A RES_ code. */
  1: optional i32 res
  /** The text; left out if `res` is not RES_SUCCESS. */
  2: optional string value
  /** As in ResLong. */
  3: optional string ext
}

/** Answer of addNewId. */
struct ResBool {
  /** A RES_ code. */
  1: optional i32 res
  /** Whether the type was created. */
  2: optional bool value
  /** As in ResLong. */
  3: optional string ext
}

/** Why a call failed. */
exception IdGenException {
  /**
   * Stable name of the failure. Decide on this, never on the message:
   * UNKNOWN_TYPE, UNKNOWN_INSTANCE, RETIRED, INVALID_ARGUMENT, ALREADY_EXISTS,
   * CONFLICT, EXHAUSTED, UNAVAILABLE, DEADLINE, OVERLOADED, PERMISSION_DENIED,
   * CLOCK_BACKWARDS, INTERNAL. Treat a name that is not listed here as INTERNAL.
   */
  1: string code
  /** What went wrong and what to do, for a person. */
  2: string message
  /** Whether the same call may succeed when it is repeated, perhaps on another node. */
  3: bool retriable
  /** For INVALID_ARGUMENT: the argument at fault. */
  4: optional string field
}

/** The ids first, first + 1, ... first + count - 1. */
struct IdRange {
  /** The lowest id. */
  1: required i64 first
  /** How many ids; at least 1. */
  2: required i64 count
}

/** What the dispatcher (the Redis instance that hands out a type) holds for a type at the moment. */
struct LiveState {
  /** Identity of the data set of the Redis instance; changes at restart, restore and promotion. */
  1: string history
  /** The identity under which the ranges below were published. Left out if nothing is published. */
  2: optional string publishedHistory
  /** Whether the ranges below are in use. If not (the two identities differ), they are never used again. */
  3: bool live
  /** The next id to hand out. */
  4: i64 cursor
  /** The range that is being handed out, whole. Left out if nothing was ever published. */
  5: optional IdRange current
  /** Reaching this id makes the next range due. */
  6: i64 updateId
  /** The range in reserve, if there is one. */
  7: optional IdRange second
  /** Ids that are left in both ranges. */
  8: i64 left
  /** Ids handed out since the last range was published. */
  9: i64 used
  /** Time since the last range was published, in milliseconds. */
  10: i64 ageMs
  /** Whether the next range is due. */
  11: bool due
}

/** The settings of a type, and where it stands. */
struct TypeInfo {
  /** Its name. */
  1: string name
  /** How ids are handed out: "strict". */
  2: string mode
  /** "active" or "retired". */
  3: string state
  /** Stands before the number in string ids. May be empty. */
  4: string prefix
  /** For people. May be empty. */
  5: string description
  /** The first id of the type. */
  6: i64 firstId
  /** The first id that no range holds yet. */
  7: i64 nextId
  /** The highest id that may ever be handed out. */
  8: i64 maxId
  /** Length of the shortest range, in ids. */
  9: i64 minRange
  /** Length of the longest range, in ids. */
  10: i64 maxRange
  /** How long a range is meant to last, in milliseconds. */
  11: i64 loadIntervalMs
  /** The share of a range, 0 to 1, after whose use the next range is loaded. */
  12: double loadPercentage
  /** How long a refill holds its lock without a sign of life, in milliseconds. */
  13: i64 lockTtlMs
  /** Length of the newest range, in ids. Left out before the first load. */
  14: optional i64 lastRange
  /** When the newest range was loaded, in milliseconds since 1970 by the store's clock. Left out before the first load. */
  15: optional i64 lastLoadMs
  /** Number of the Redis instance that hands out the type. */
  16: i64 instance
  /** Identity of the instance's data set under which the newest range was loaded. */
  17: optional string history
  /** Counts the changes of the settings; starts at 1. */
  18: i64 version
  /** When the type was created, in milliseconds since 1970 by the store's clock. */
  19: i64 createdMs
  /** When its settings last changed, likewise. */
  20: i64 updatedMs
  /** How many ids may still be loaded before maxId. */
  21: i64 unallocated
  /** What the dispatcher holds now. Left out when it cannot be reached. */
  22: optional LiveState live
}

/** A part that a node depends on. */
struct PartInfo {
  /** "store", or the name of a Redis instance. */
  1: string name
  /** "mysql", "embedded", "redis" or "memory". */
  2: string kind
  /** Whether it answered when it was last asked. */
  3: bool reachable
  /** The last error, if it did not answer. */
  4: optional string error
}

/** The state of the node that answers. */
struct NodeInfo {
  /** Its id, as in the logs of ranges. */
  1: string node
  /** The version of the program. */
  2: string version
  /** Seconds since it started. */
  3: i64 uptimeS
  /** Whether it takes requests. */
  4: bool ready
  /** Whether it is shutting down. */
  5: bool draining
  /** How many types it knows. */
  6: i64 typesLoaded
  /** The range store and the Redis instances. */
  7: list<PartInfo> parts
}

service IdGenService {
  /**
   * The next id of a type. Original interface.
   *
   * RES_BAD_PARAMETER for an empty, missing or illegal idName; RES_INNER_ERROR
   * for an unknown type and everything else. `caller` is free text and may be empty.
   */
  ResLong getId(1: string caller, 2: string idName)

  /**
   * The next id of a type as decimal text, with the type's prefix before it if
   * usePrefix is true. Original interface; codes as in getId.
   */
  ResStr getStrId(1: string caller, 2: string idName, 3: bool usePrefix)

  /**
   * Creates a type; every node serves it within a second. Original interface.
   *
   * newIdInfo is a JSON object. Every field must be there, unless it says optional:
   *
   *   project_name       text; goes into the description
   *   id_name            the name of the type
   *   id_prifx           text before the number in string ids, at most 64
   *                      characters (id_prefix is accepted instead)
   *   id_start           > 0; the first id that is handed out is id_start + 1
   *   last_range         >= 0; checked, not used: the first range has min_range ids
   *   min_range          > 0; shortest range, in ids
   *   max_range          > min_range; longest range, in ids
   *   last_load_time     optional; not used
   *   applicant          text; goes into the description
   *   redis_flag         number or name of a Redis instance that exists
   *   state              1
   *   min_load_interval  1 to 86400; how long a range is meant to last, in seconds
   *   load_percentage    0 to 1
   *   lock_expire        1 to 600, in seconds
   *   other_info         optional text; goes into the description
   *
   * RES_BAD_PARAMETER for JSON that is broken or incomplete, a field that is not
   * known or given twice, and a value out of range; RES_INNER_ERROR for a name
   * that is taken and a Redis instance that does not exist.
   */
  ResBool addNewId(1: string caller, 2: string newIdInfo)

  /**
   * Gives srcStr back. Original interface: clients call it to see whether the
   * connection still works. RES_BAD_PARAMETER for an empty or missing caller.
   */
  ResStr echo(1: string caller, 2: string srcStr)

  /** The next id of a type. */
  i64 nextId(1: string idType) throws (1: IdGenException error)

  /**
   * The next `count` ids of a type, 1 to MAX_COUNT.
   *
   * The answer is a list of ranges, ascending, nearly always exactly one: so a
   * call for 100 000 ids is as small on the wire as a call for one. The ranges
   * hold exactly `count` ids together, or the call fails; it never answers with less.
   */
  list<IdRange> nextIds(1: string idType, 2: i32 count) throws (1: IdGenException error)

  /** The next id of a type as decimal text, with the type's prefix before it if withPrefix is true. */
  string nextStringId(1: string idType, 2: bool withPrefix) throws (1: IdGenException error)

  /** The settings of a type, and where it stands. Uses up no id. */
  TypeInfo describeType(1: string idType) throws (1: IdGenException error)

  /** The state of the node that answers. */
  NodeInfo nodeStatus() throws (1: IdGenException error)
}
