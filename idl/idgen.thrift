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
 *  - all others raise IdGenException, with a stable code and whether a retry helps.
 *
 * What holds for every call that hands out ids: an id of a type is handed out
 * at most once, ever. Gaps are normal, duplicates are not. A call whose answer is
 * lost (timeout, broken connection) may have used up ids: just call again, or
 * give a requestKey and get the same ones. Every method that hands out ids works
 * for every type, but for what a type needs (a gatePass) or cannot have (a
 * lease): then it raises INVALID_ARGUMENT, and `field` names the argument. What
 * else holds is a matter of the type's mode:
 *
 *  - strict: a call that starts after another one has returned, through any node
 *    of the cluster, gets a larger id.
 *  - segment: the ids that one node hands out ascend. Those of two nodes have no
 *    order between them.
 *  - sharded: a gatePass chooses one of 64 shards; the ids of a shard that one
 *    node hands out ascend. id = number << 14 | shard << 8 | app id.
 *  - snowflake: the ids that one node hands out ascend; those of two nodes follow
 *    the time, as closely as the clocks of the nodes agree. In the layout that is
 *    the default, id = milliseconds << 22 | worker << 12 | sequence.
 *
 * Options of a type take part of that back: the ids of an opaque type are in no
 * order at all; those of a type that cycles start again after the highest one, and
 * so repeat from then on; and the number of a calendar series restarts with the
 * day, month or year, so that only its texts are ids (issueStringIds), and its
 * numbers are refused. A strict type with on_redis_loss = segment is as a segment
 * type for as long as its Redis instance is out of reach.
 *
 * A node may be told to hand out ids to callers with an API token only. Then call
 * authenticate first on every connection; a client that only knows the original
 * methods gives the token as `caller`. Without a right to the type a call fails with
 * PERMISSION_DENIED, and beyond the caller's quota with QUOTA_EXCEEDED (`res` 553).
 * echo, nodeStatus and authenticate need no token.
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

/** Highest count that one call of nextIds or issueIds may ask for. */
const i32 MAX_COUNT = 100000
/** Highest count that one call of issueStringIds may ask for. */
const i32 MAX_TEXTS = 10000
/** Highest count that one call of leaseRange may ask for. */
const i64 MAX_LEASE = 10000000
/** The shortest life of a lease that leaseRange gives, in milliseconds. */
const i64 MIN_LEASE_MS = 1000
/** The longest, a day. */
const i64 MAX_LEASE_MS = 86400000
/** How long a requestKey gives the same ids again, in milliseconds. */
const i64 REQUEST_KEY_LIFE_MS = 600000
/** The longest requestKey, in bytes. */
const i32 MAX_REQUEST_KEY = 128
/** The longest gatePass, in bytes. */
const i32 MAX_GATE_PASS = 1024

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
   * QUOTA_EXCEEDED, CLOCK_BACKWARDS, INTERNAL. Treat a name that is not listed here
   * as INTERNAL.
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

/** Ids that a client may hand out by itself: first, first + step, first + 2 * step, and so on. */
struct RangeLease {
  /** The first id. */
  1: required i64 first
  /** How many ids; at least 1, perhaps fewer than asked for. */
  2: required i64 count
  /** From one id to the next: 1, or the number of sites. */
  3: required i64 step
  /**
   * For how long the client may hand them out, in milliseconds from when it sent
   * the call. What is left then must not be used any more; nobody else gets it.
   */
  4: required i64 ttlMs
}

/** What an id tells. */
struct DecodedId {
  /** The type. */
  1: string idType
  /** Its mode. */
  2: string mode
  /** The number, where the id is one. Left out for a calendar series, which has texts only. */
  3: optional i64 id
  /** The text, as the type's format writes it. */
  4: string text
  /** Its place in the sequence; in its period, for a calendar series. Left out for a snowflake type. */
  5: optional i64 position
  /** The first day of its period, as 2026-11-21, of a calendar series. */
  6: optional string period
  /** The shard, 0 to 63, of a sharded type. */
  7: optional i32 shard
  /** The app id, 0 to 255, of a sharded type. */
  8: optional i64 appId
  /** The worker id, of a snowflake type. */
  9: optional i64 worker
  /** The sequence within its unit of time, of a snowflake type. */
  10: optional i64 sequence
  /**
   * When, in milliseconds since 1970: the time in a snowflake id, else when its
   * range was allocated. Left out where nobody knows it any more.
   */
  11: optional i64 atMs
  /** Which node handed it out, or got its range. Left out where nobody knows it any more. */
  12: optional string node
  /** The first position of its range, likewise. */
  13: optional i64 rangeFirst
  /** The length of its range, likewise. */
  14: optional i64 rangeCount
  /** Whether it can have been handed out. False for an id that lies ahead. */
  15: bool issued
}

/** Ids that the node that answers holds for a type. */
struct LocalSupply {
  /** Ids at hand. */
  1: i64 left
  /** Ranges at hand, the one in use included. */
  2: i64 ranges
  /** How many ranges the node keeps ahead now. */
  3: i64 ahead
  /** Ids per second, as last measured at this node. */
  4: optional double rate
  /** How long the ids at hand last at this rate, in seconds. */
  5: optional double runwayS
  /** The worker id in use, of a snowflake type. */
  6: optional i64 worker
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
  /** How ids are handed out: "strict", "segment", "sharded" or "snowflake". More may follow. */
  2: string mode
  /** "active" or "retired". */
  3: string state
  /** Stands before the number in string ids. May be empty. */
  4: string prefix
  /** For people. May be empty. */
  5: string description
  /** The first id of the type. */
  6: i64 firstId
  /**
   * The first position that no range holds yet; of a sharded type, the highest of
   * its shards. For a plain type, positions are ids.
   */
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
  /**
   * How many ids may still be loaded before maxId; in its newest period, for a
   * calendar series. Without meaning for a snowflake type.
   */
  21: i64 unallocated
  /** What the dispatcher holds now. Left out when it cannot be reached, and for a type that needs none. */
  22: optional LiveState live
  /** What the type is beyond a plain sequence, as a JSON object: the options of the admin API. "{}" for nothing. */
  23: string options
  /** The highest position that may be loaded; in each period, for a calendar series. */
  24: i64 maxPosition
  /** What the node that answers holds for itself. Left out when it handed out no id of the type. */
  25: optional LocalSupply local
  /**
   * When maxId, or the end of the epoch, will be reached at the rate that this
   * node knows, in milliseconds since 1970. Left out when there is no rate or no
   * end. For a calendar series: when the numbers of the period will run out, where
   * that is before the period ends.
   */
  26: optional i64 exhaustedAtMs
  /** Number of the Redis instance that the type is being moved to. Left out when it stays. */
  27: optional i64 movingTo
  /** Number of the Redis instance that it was on before. Left out when it was never moved. */
  28: optional i64 movedFrom
  /** Counts the steps of its moves between Redis instances. */
  29: optional i64 generation
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
   * for an unknown type and everything else. `caller` is free text and may be empty;
   * one that begins with idg_ is an API token, and counts for this call alone.
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
   * The answer is a list of ranges in the order of the ids, nearly always exactly
   * one: so a call for 100 000 ids is as small on the wire as a call for one. The
   * ids of an opaque or sharded type, and of one with sites, do not follow each
   * other: there each is a range of its own, and 100 000 of them are 2.3 MB in the
   * binary protocol and 1.5 MB or less in the compact one. The ranges hold exactly
   * `count` ids together, or the call fails; it never answers with less.
   */
  list<IdRange> nextIds(1: string idType, 2: i32 count) throws (1: IdGenException error)

  /** The next id of a type as decimal text, with the type's prefix before it if withPrefix is true. */
  string nextStringId(1: string idType, 2: bool withPrefix) throws (1: IdGenException error)

  /** The settings of a type, and where it stands. Uses up no id. */
  TypeInfo describeType(1: string idType) throws (1: IdGenException error)

  /** The state of the node that answers. */
  NodeInfo nodeStatus() throws (1: IdGenException error)

  /**
   * The next id of a sharded type, from the shard of gatePass: the Java
   * String.hashCode() of the text, its absolute value modulo 64. The same text
   * always gives the same shard. INVALID_ARGUMENT for a type that is not sharded,
   * and for a gatePass that is empty, missing or longer than MAX_GATE_PASS.
   */
  i64 nextShardedId(1: string idType, 2: string gatePass) throws (1: IdGenException error)

  /**
   * The next `count` ids of a type, 1 to MAX_COUNT, as nextIds gives them.
   *
   * requestKey, if given, makes the call repeatable: the same key with the same
   * arguments gives the same ids again, through any node, for REQUEST_KEY_LIFE_MS.
   * With other arguments it is a CONFLICT. 1 to MAX_REQUEST_KEY printable ASCII
   * characters without spaces; choose one that nobody else has, such as a UUID. It
   * needs the type's Redis instance, in every mode.
   *
   * gatePass: see nextShardedId. A sharded type needs it; every other refuses it.
   *
   * An empty text counts as not given.
   */
  list<IdRange> issueIds(1: string idType, 2: i32 count, 3: string requestKey, 4: string gatePass)
    throws (1: IdGenException error)

  /**
   * The next `count` ids of a type as text, 1 to MAX_TEXTS: in the type's format,
   * else in decimal with the prefix before it. Without withPrefix the prefix counts
   * as empty. requestKey and gatePass as in issueIds.
   */
  list<string> issueStringIds(1: string idType, 2: i32 count, 3: bool withPrefix, 4: string requestKey, 5: string gatePass)
    throws (1: IdGenException error)

  /**
   * Up to `count` ids, 1 to MAX_LEASE, for the client to hand out by itself for
   * ttlMs, MIN_LEASE_MS to MAX_LEASE_MS, from when it sent the call. Segment types
   * whose ids are in order only: INVALID_ARGUMENT for others.
   */
  RangeLease leaseRange(1: string idType, 2: i64 count, 3: i64 ttlMs) throws (1: IdGenException error)

  /**
   * What an id of a type tells. `id` is a number in decimal, or a text as the type's
   * format writes it. INVALID_ARGUMENT for one that the type cannot have handed out.
   * Uses up no id.
   */
  DecodedId decodeId(1: string idType, 2: string id) throws (1: IdGenException error)

  /**
   * Says who calls on this connection, by an API token: from here on the calls of
   * the connection are those of this caller, until the next authenticate.
   * PERMISSION_DENIED for a token that is not valid, UNAVAILABLE where the node does
   * not know it and cannot look it up; then the calls that follow are nobody's.
   *
   * Once per connection, before the calls. A token that is revoked or expires later
   * lets no call pass any more, within a second: those fail with PERMISSION_DENIED.
   * An empty text is INVALID_ARGUMENT.
   */
  void authenticate(1: string token) throws (1: IdGenException error)
}
