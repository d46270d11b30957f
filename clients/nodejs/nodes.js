'use strict';
// Calls to IdGen that go on to the next node where one does not answer.
//
// Copy this file into your project, beside the code that the Thrift compiler makes.

const thrift = require('thrift');
const IdGenService = require('./IdGenService');
const { IdGenException } = require('./idgen_types');

/** A node cannot be reached, or did not answer. */
class NoAnswer extends Error {}

/**
 * One connection, to the first of the nodes that works. Any number of calls may be under
 * way on it at the same time.
 */
class Nodes {
  #nodes;
  #timeout;
  #attempts;
  #onConnect;
  #at = 0;
  #link = null;

  /**
   * `nodes` are texts as "10.0.0.1:5900". `timeout` is how long an attempt may take, in
   * milliseconds, connecting included. `onConnect` is called with the client after each
   * connecting, and what it returns is awaited; authenticate there, if your cluster wants
   * a token.
   */
  constructor(nodes, { timeout = 2000, attempts = 4, onConnect = () => {} } = {}) {
    if (nodes.length === 0 || attempts < 1) {
      throw new Error('no nodes, or no attempts');
    }
    this.#nodes = [...nodes];
    this.#timeout = timeout;
    this.#attempts = attempts;
    this.#onConnect = onConnect;
  }

  /**
   * What `method` resolves to, which is called with a connected client.
   *
   * Tries again, on the next node, where a retry may help: after an IdGenException that
   * says so, and where the node cannot be reached or does not answer (NoAnswer). A
   * repeated call may use up more ids; it never brings one twice. `attempts` of the error
   * that this rejects with tells how many there were.
   */
  async call(method) {
    for (let attempt = 1; ; attempt++) {
      const link = (this.#link ??= this.#connect());
      try {
        return await this.#attempt(link, method);
      } catch (error) {
        if (error instanceof Error) {
          error.attempts = attempt;
        }
        if (!(error instanceof NoAnswer || (error instanceof IdGenException && error.retriable))) {
          throw error;
        }
        this.#leave(link);
        if (attempt === this.#attempts) {
          throw error;
        }
      }
      if (attempt % this.#nodes.length === 0) {
        // Every node had its turn. At random, so that clients do not come in step.
        await new Promise((resolve) => setTimeout(resolve, 50 + 100 * Math.random()));
      }
    }
  }

  /** Closes the connection; calls that are under way fail. The next call makes a new one. */
  close() {
    if (this.#link !== null) {
      this.#lose(this.#link, 'closed', Error);
    }
  }

  #connect() {
    const node = this.#nodes[this.#at];
    const colon = node.lastIndexOf(':');
    const connection = thrift.createConnection(node.slice(0, colon), Number(node.slice(colon + 1)), {
      transport: thrift.TFramedTransport,
      protocol: thrift.TCompactProtocol,
    });
    const link = { node, connection, left: false, waiting: new Set() };
    // The library leaves the calls of a connection that ends waiting for ever.
    connection.on('error', (error) => this.#lose(link, error.message));
    connection.on('close', () => this.#lose(link, 'the connection was closed'));
    const client = thrift.createClient(IdGenService, connection);
    link.client = (async () => {
      await this.#onConnect(client);
      return client;
    })();
    link.client.catch(() => this.#leave(link));
    return link;
  }

  /** Ends with the method, the loss of the connection, or the time. */
  #attempt(link, method) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#lose(link, `no answer in ${this.#timeout} ms`), this.#timeout);
      const done = (settle) => (value) => {
        clearTimeout(timer);
        link.waiting.delete(fail);
        settle(value);
        closeIfUnused(link);
      };
      const fail = done(reject);
      link.waiting.add(fail);
      link.client.then(method).then(done(resolve), fail);
    });
  }

  /** Ends the connection, and with it what waits for an answer from it. */
  #lose(link, why, Kind = NoAnswer) {
    this.#leave(link);
    link.connection.destroy();
    for (const fail of [...link.waiting]) {
      fail(new Kind(`${link.node}: ${why}`));
    }
  }

  /** The calls to come go to the next node; those under way here may end. */
  #leave(link) {
    if (this.#link === link) {
      this.#link = null;
      this.#at = (this.#at + 1) % this.#nodes.length;
    }
    link.left = true;
    closeIfUnused(link);
  }
}

function closeIfUnused(link) {
  if (link.left && link.waiting.size === 0) {
    link.connection.destroy();
  }
}

module.exports = { Nodes, NoAnswer };
