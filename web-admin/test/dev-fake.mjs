// `npm run dev:fake`: the fake node on 5980 and Vite in front of it.
// Log in as alice or bob with the password "correct horse battery".
import { createServer } from 'vite';
import { start } from './fake.mjs';

const fake = await start({ port: 5980, page: false });
const vite = await createServer();
await vite.listen();
vite.printUrls();
process.on('SIGINT', () => {
  fake.close();
  vite.close().finally(() => process.exit(0));
});
