import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

/** Where `npm run dev` finds a node (or the fake one of `npm run dev:fake`). */
const node = process.env.IDGEN_NODE ?? 'http://127.0.0.1:5980';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2022',
    // The content security policy allows scripts and styles of this origin only,
    // so nothing may be turned into a `data:` address or an inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  server: {
    host: '127.0.0.1',
    // Keeps `Host`, which a node may compare with `Origin`.
    proxy: { '/api': { target: node, changeOrigin: false } },
  },
  test: { include: ['test/**/*.test.ts'] },
});
