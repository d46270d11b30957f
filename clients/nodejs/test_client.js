'use strict';
// Tests generated code and library over every pair of transport and protocol.
//
// Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const thrift = require('thrift');
const IdGenService = require('./IdGenService');
const { IdGenException } = require('./idgen_types');

const { toBigInt } = thrift;
const [HOST, PORT] = process.env.CLIENTS_NODE.split(':');
let last = 0n;

for (const transport of [thrift.TFramedTransport, thrift.TBufferedTransport]) {
  for (const protocol of [thrift.TBinaryProtocol, thrift.TCompactProtocol]) {
    test(`${transport.name} ${protocol.name}`, async () => {
      const connection = thrift.createConnection(HOST, Number(PORT), { transport, protocol });
      // The library leaves calls waiting for ever where the connection fails.
      const lost = new Promise((_, reject) => {
        connection.on('error', reject);
        connection.on('close', () => reject(new Error('the connection was closed')));
      });
      try {
        await Promise.race([lost, all(thrift.createClient(IdGenService, connection))]);
      } finally {
        connection.end();
      }
    });
  }
}

async function all(client) {
  await ids(client);
  await large(client);
  await texts(client);
  await refusals(client);
}

/** Ids ascend, by every method and over all pairs. */
async function ids(client) {
  for (let at = 0; at < 200; at++) {
    ascends(toBigInt(await client.nextId('order')));
  }
  let count = 0;
  for (const range of await client.nextIds('order', 1000)) {
    ascends(toBigInt(range.first));
    last += toBigInt(range.count) - 1n;
    count += Number(range.count);
  }
  assert.equal(count, 1000);
  const answer = await client.getId('nodejs', 'order');
  assert.equal(answer.res, 200);
  ascends(toBigInt(answer.value));
  const text = await client.getStrId('nodejs', 'order', true);
  assert.equal(text.res, 200);
  assert.match(text.value, /^OD[0-9]+$/);
  ascends(BigInt(text.value.slice(2)));
  ascends(BigInt((await client.nextStringId('order', true)).slice(2)));
  // Several calls under way on one connection.
  for (const id of await Promise.all(Array.from({ length: 50 }, () => client.nextId('order')))) {
    ascends(toBigInt(id));
  }
}

function ascends(id) {
  assert.ok(id > last, `${id} after ${last}`);
  last = id;
}

/** Numbers above 2^53 and near 2^63 are exact: text and number follow each other. */
async function large(client) {
  for (const type of ['big', 'huge']) {
    const text = BigInt(await client.nextStringId(type, false));
    const id = toBigInt(await client.nextId(type));
    assert.ok(id > 2n ** 53n, `not a large id: ${id}`);
    assert.equal(id, text + 1n);
    assert.equal(toBigInt((await client.nextIds(type, 2))[0].first), id + 1n);
    assert.equal(toBigInt((await client.decodeId(type, text.toString())).id), text);
  }
}

/** UTF-8 both ways. */
async function texts(client) {
  assert.match(await client.nextStringId('umlaut', true), /^Größe-№-[0-9]+$/);
  assert.equal((await client.describeType('umlaut')).prefix, 'Größe-№-');
  assert.equal((await client.echo('nodejs', 'grüß dich, 世界 😀')).value, 'grüß dich, 世界 😀');
}

/** Failures, typed or in `res`. */
async function refusals(client) {
  for (const [call, code, retriable, field] of [
    [client.nextId('no-such-type'), 'UNKNOWN_TYPE', false, null],
    [client.nextIds('order', 0), 'INVALID_ARGUMENT', false, 'count'],
    [client.nextId('down'), 'UNAVAILABLE', true, null],
  ]) {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof IdGenException, error);
      assert.deepEqual([error.code, error.retriable, error.field], [code, retriable, field]);
      return true;
    });
  }
  const answer = await client.getId('nodejs', 'no-such-type');
  assert.deepEqual([answer.res, toBigInt(answer.value)], [553, -1n]);
  assert.match(answer.ext, /^UNKNOWN_TYPE: /);
}
