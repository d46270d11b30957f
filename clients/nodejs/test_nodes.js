'use strict';
// Tests Nodes: against a real node, and against ones that do not do as they should.
//
// Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const { test } = require('node:test');
const { toBigInt } = require('thrift');
const { IdGenException } = require('./idgen_types');
const { Nodes, NoAnswer } = require('./nodes');

const NODE = process.env.CLIENTS_NODE;
const NOBODY = '127.0.0.1:1';

/** Runs `use` with Nodes, and closes them. */
async function using(nodes, options, use) {
  const made = new Nodes(nodes, options);
  try {
    await use(made);
  } finally {
    made.close();
  }
}

/** Listens, hands what comes to `connected`, and runs `use` with the address. */
async function listening(connected, use) {
  const sockets = [];
  const server = net.createServer((socket) => {
    // Read on, or it would never see that the other side is gone.
    sockets.push(socket.on('error', () => {}).resume());
    connected(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await use(`127.0.0.1:${server.address().port}`);
  } finally {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  }
}

const nextId = (client) => client.nextId('order');

test('the next node takes over, for all calls that are under way', () =>
  using([NOBODY, NODE], {}, async (nodes) => {
    const ids = await Promise.all(Array.from({ length: 100 }, () => nodes.call(nextId)));
    assert.equal(new Set(ids.map(toBigInt)).size, 100);
  }));

test('a node that does not answer is passed over', () =>
  listening(() => {}, (silent) =>
    using([silent, NODE], { timeout: 200 }, async (nodes) => {
      assert.ok(toBigInt(await nodes.call(nextId)) > 0n);
    })));

test('a node that hangs up is passed over', () =>
  listening((socket) => socket.once('data', () => socket.destroy()), (rude) =>
    using([rude, NODE], {}, async (nodes) => {
      assert.ok(toBigInt(await nodes.call(nextId)) > 0n);
    })));

test('a node that talks nonsense is passed over', () =>
  listening((socket) => socket.once('data', () => socket.write(Buffer.from([0, 0, 0, 4, 1, 2, 3, 4]))), (odd) =>
    using([odd, NODE], {}, async (nodes) => {
      assert.ok(toBigInt(await nodes.call(nextId)) > 0n);
    })));

test('a connection that ends between two calls is not used again', () =>
  listening(
    (socket) => {
      const onward = net.connect(Number(NODE.split(':')[1]), '127.0.0.1');
      socket.pipe(onward).pipe(socket);
      socket.on('close', () => onward.destroy());
      // After the first answer.
      onward.once('data', () => setImmediate(() => socket.end()));
    },
    (brief) =>
      using([brief], {}, async (nodes) => {
        const ids = [];
        for (let at = 0; at < 3; at++) {
          ids.push(toBigInt(await nodes.call(nextId)));
        }
        assert.equal(new Set(ids).size, 3);
      }),
  ));

test('what no retry helps is raised at once, and the connection stays', async () => {
  let connected = 0;
  await using([NODE], { onConnect: () => connected++ }, async (nodes) => {
    await assert.rejects(nodes.call((client) => client.nextId('no-such-type')), (error) => {
      assert.ok(error instanceof IdGenException, error);
      assert.deepEqual([error.code, error.attempts], ['UNKNOWN_TYPE', 1]);
      return true;
    });
    await nodes.call(nextId);
    assert.equal(connected, 1);
  });
});

test('what a retry may help is raised in the end', () =>
  using([NODE, NOBODY], { attempts: 3 }, (nodes) =>
    assert.rejects(nodes.call((client) => client.nextId('down')), (error) => {
      assert.ok(error instanceof IdGenException, error);
      assert.deepEqual([error.code, error.attempts], ['UNAVAILABLE', 3]);
      return true;
    })));

test('nobody answers', () =>
  using([NOBODY], { attempts: 2 }, (nodes) =>
    assert.rejects(nodes.call(nextId), (error) => {
      assert.ok(error instanceof NoAnswer, error);
      assert.equal(error.attempts, 2);
      return true;
    })));

test('onConnect comes before the calls, and may fail', async () => {
  const refused = new Error('as told');
  let failures = 1;
  const onConnect = async (client) => {
    assert.equal((await client.echo('me', 'hello')).value, 'hello');
    if (failures-- > 0) {
      throw refused;
    }
  };
  await using([NODE], { onConnect }, async (nodes) => {
    await assert.rejects(nodes.call(nextId), refused);
    assert.ok(toBigInt(await nodes.call(nextId)) > 0n);
  });
});

test('close ends the calls that are under way, for good', () =>
  listening(() => {}, (silent) =>
    using([silent], { timeout: 1e6 }, async (nodes) => {
      const call = nodes.call(nextId);
      nodes.close();
      await assert.rejects(call, /closed/);
    })));
