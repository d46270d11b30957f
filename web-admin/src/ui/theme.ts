/**
 * The theme of Mantine: colours, sizes, and what is the same for every use of a component.
 *
 * Its variables are written into the style sheet at build time (`themeVariables` in
 * vite.config.ts), never into a `<style>` of the page: the content security policy allows
 * style sheets of this origin only. Both schemes keep a contrast of 4.5 : 1 for text.
 */
import { type CSSVariablesResolver, createTheme } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: { light: 6, dark: 7 },
  defaultRadius: 'sm',
  respectReducedMotion: true,
  cursorType: 'pointer',
  fontFamily:
    'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, "SFMono-Regular", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace',
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  fontWeights: { regular: '400', medium: '500', bold: '600' },
  spacing: { xs: '8px', sm: '12px', md: '16px', lg: '20px', xl: '32px' },
  radius: { xs: '3px', sm: '6px', md: '8px', lg: '12px', xl: '24px' },
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '20px', lineHeight: '1.3' },
      h2: { fontSize: '14px', lineHeight: '1.4' },
      h3: { fontSize: '13px', lineHeight: '1.4' },
    },
  },
  colors: {
    blue: [
      '#eef3fd',
      '#e6edfb',
      '#c9d8f6',
      '#a9c0f5',
      '#8fb1ff',
      '#5b84de',
      '#2457c5',
      '#3462c8',
      '#1d48a6',
      '#173a86',
    ],
    gray: [
      '#f7f8fa',
      '#f0f2f5',
      '#e3e7ee',
      '#dde1e7',
      '#b4bcc8',
      '#8b95a5',
      '#5a6474',
      '#434c5a',
      '#2b3340',
      '#1b2230',
    ],
    dark: [
      '#e4e8ef',
      '#c6cdd8',
      '#9aa5b5',
      '#7d899b',
      '#343d4b',
      '#262d39',
      '#1f2530',
      '#181d26',
      '#10141b',
      '#0b0e14',
    ],
  },
  components: {
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: 14, tabularNums: true } },
    Tooltip: { defaultProps: { multiline: true, maw: 320, openDelay: 300, withArrow: true } },
    Modal: {
      // Scrolling is locked by style.css: the library would inject a <style> for it.
      defaultProps: { lockScroll: false, radius: 'md', transitionProps: { duration: 120 } },
    },
    // Lists stay where their input is, so that they belong to its landmark and its dialog.
    Combobox: { defaultProps: { shadow: 'md', withinPortal: false } },
  },
});

type Tints = Record<'filled' | 'hover' | 'soft' | 'text', string>;

const tints = (color: string, { filled, hover, soft, text }: Tints) => ({
  [`--mantine-color-${color}-filled`]: filled,
  [`--mantine-color-${color}-filled-hover`]: hover,
  [`--mantine-color-${color}-light`]: soft,
  [`--mantine-color-${color}-light-hover`]: soft,
  [`--mantine-color-${color}-light-color`]: text,
  [`--mantine-color-${color}-outline`]: text,
  [`--mantine-color-${color}-outline-hover`]: soft,
  [`--mantine-color-${color}-text`]: text,
});

/** The colours of states: good, warning, bad, news, and none of them. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-text': 'var(--mantine-color-gray-9)',
    '--mantine-color-default-color': 'var(--mantine-color-gray-9)',
    '--mantine-color-placeholder': 'var(--mantine-color-gray-6)',
    '--mantine-color-error': '#b3261e',
    '--idgen-page': '#f4f5f7',
    '--idgen-track': 'var(--mantine-color-gray-2)',
    '--idgen-fill': '#7f9fe0',
    '--idgen-accent-soft': '#2457c51a',
    ...tints('blue', { filled: '#2457c5', hover: '#1d48a6', soft: '#e6edfb', text: '#2457c5' }),
    ...tints('green', { filled: '#146c43', hover: '#0f5735', soft: '#e2f3ea', text: '#146c43' }),
    ...tints('yellow', { filled: '#855300', hover: '#6b4300', soft: '#fdf0d5', text: '#7a4c00' }),
    ...tints('red', { filled: '#b3261e', hover: '#931d17', soft: '#fce8e6', text: '#b3261e' }),
    ...tints('gray', { filled: '#5a6474', hover: '#434c5a', soft: '#e3e7ee', text: '#434c5a' }),
  },
  dark: {
    '--mantine-color-placeholder': 'var(--mantine-color-dark-2)',
    '--mantine-color-default-color': 'var(--mantine-color-dark-0)',
    '--mantine-color-default-border': '#465063',
    '--mantine-color-error': '#ff9d94',
    '--idgen-page': 'var(--mantine-color-dark-8)',
    '--idgen-track': '#2c3441',
    '--idgen-fill': '#4d70bd',
    '--idgen-accent-soft': '#8fb1ff22',
    ...tints('blue', { filled: '#3462c8', hover: '#4172dc', soft: '#1b2a4a', text: '#8fb1ff' }),
    ...tints('green', { filled: '#1c7a4e', hover: '#218f5b', soft: '#16352a', text: '#7fd6a5' }),
    ...tints('yellow', { filled: '#8a5a0a', hover: '#a06a10', soft: '#3a2d12', text: '#f0bd62' }),
    ...tints('red', { filled: '#b93a31', hover: '#cc463c', soft: '#431f1d', text: '#ff9d94' }),
    ...tints('gray', { filled: '#465063', hover: '#556076', soft: '#2c3441', text: '#c6cdd8' }),
  },
});
