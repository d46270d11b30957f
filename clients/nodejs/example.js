'use strict';
// A client of IdGen: example.js HOST:PORT[,HOST:PORT…] [TYPE]

const { toBigInt } = require('thrift');
const { IdGenException } = require('./idgen_types');
const { Nodes } = require('./nodes');

/** Takes ids in every way that most programs need. */
async function main(list, type = 'order') {
  const nodes = new Nodes(list.split(','));
  try {
    // An i64 comes as an Int64, whose own toString() is wrong above 2^53.
    const id = toBigInt(await nodes.call((client) => client.nextId(type)));
    console.log('id:', id.toString());

    const ranges = await nodes.call((client) => client.nextIds(type, 100));
    const ids = ranges.flatMap(({ first, count }) =>
      Array.from({ length: Number(count) }, (_, at) => toBigInt(first) + BigInt(at)),
    );
    console.log(`ids: ${ids[0]} to ${ids.at(-1)}`);

    console.log('text:', await nodes.call((client) => client.nextStringId(type, true)));

    try {
      await nodes.call((client) => client.nextId('no-such-type'));
    } catch (error) {
      if (!(error instanceof IdGenException)) {
        throw error;
      }
      console.log('refused:', error.code);
    }
  } catch (error) {
    console.error(`failed after ${error.attempts} attempts: ${error.code}: ${error.message}`);
    process.exitCode = 1;
  } finally {
    nodes.close();
  }
}

main(...process.argv.slice(2));
