// Fails when the first view weighs more than it may: index.html, and every script
// and style that it names or that those import at once, the chart of the overview and
// the largest language beside English, all of it gzipped. Also fails on an inline script or style, which the policy forbids.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const LIMIT = 400 * 1024;
const root = new URL('../dist/', import.meta.url).pathname;
const html = readFileSync(join(root, 'index.html'), 'utf8');
if (/<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=/i.test(html)) {
  console.error('index.html has an inline script or style: the content security policy forbids it');
  process.exit(1);
}
const queue = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((found) => found[1]);
const seen = new Set();
while (queue.length > 0) {
  const file = queue.pop();
  if (seen.has(file)) continue;
  seen.add(file);
  if (!file.endsWith('.js')) continue;
  const text = readFileSync(join(root, file), 'utf8');
  for (const [, to] of text.matchAll(/(?:from|import)\s*"(\.\/[^"]+\.js)"/g)) {
    queue.push(normalize(join(dirname(file), to)));
  }
}
// Loaded when they are wanted, but wanted by the first view.
for (const name of readdirSync(join(root, 'assets'))) {
  if (/^(chart|zh)-[^.]+\.(js|css)$/.test(name)) seen.add(`assets/${name}`);
}
let total = statSync(join(root, 'index.html.gz')).size;
for (const file of seen) total += statSync(join(root, `${file}.gz`)).size;
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
console.log(`first view: ${kib(total)} compressed in ${seen.size + 1} files (limit ${kib(LIMIT)})`);
if (seen.size < 5) {
  console.error('found no script or style in index.html: this check is broken');
  process.exit(1);
}
if (total > LIMIT) {
  console.error('too much: split a view off, or do without a library');
  process.exit(1);
}
