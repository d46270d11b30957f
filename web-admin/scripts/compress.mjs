// Writes a .br and a .gz beside every asset of dist/, so that a node sends
// compressed bytes without compressing anything itself.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const root = new URL('../dist/', import.meta.url).pathname;
for (const name of readdirSync(root, { recursive: true })) {
  const path = join(root, String(name));
  if (!/\.(html|js|css|svg|json)$/.test(path) || !statSync(path).isFile()) continue;
  const bytes = readFileSync(path);
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
}
