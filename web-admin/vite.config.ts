import {
  convertCssVariables,
  DEFAULT_THEME,
  deepMerge,
  defaultCssVariablesResolver,
  mergeMantineTheme,
} from '@mantine/core';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { theme, variables } from './src/ui/theme.ts';

/** Where `npm run dev` finds a node (or the fake one of `npm run dev:fake`). */
const node = process.env.IDGEN_NODE ?? 'http://127.0.0.1:5980';

/**
 * `virtual:theme.css`: the variables of the theme as a style sheet.
 *
 * Mantine would write them into a `<style>` of the page, which `style-src 'self'` forbids.
 * What else of it injects a `<style>` is not used: AppShell, Grid, SimpleGrid, style
 * properties that depend on the width, the scroll lock of dialogs, the global classes.
 */
function themeVariables(): Plugin {
  const id = 'virtual:theme.css';
  return {
    name: 'theme-variables',
    resolveId: (wanted) => (wanted === id ? `\0${id}` : undefined),
    load(wanted) {
      if (wanted !== `\0${id}`) return undefined;
      const whole = mergeMantineTheme(DEFAULT_THEME, theme);
      const css = convertCssVariables(
        deepMerge(defaultCssVariablesResolver(whole), variables(whole)),
        ':root',
      );
      // Of the palettes, those that the page uses.
      return css.replace(
        /(?<=[;{\s])--mantine-color-(pink|grape|violet|indigo|cyan|lime|orange)-[^:;]*:[^;]*;/g,
        '',
      );
    },
  };
}

export default defineConfig({
  plugins: [react(), themeVariables()],
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
