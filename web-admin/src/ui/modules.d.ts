/** The variables of the theme, made by vite.config.ts. */
declare module 'virtual:theme.css';

/** One icon; the package has types for its index only. */
declare module '@tabler/icons-react/dist/esm/icons/*.mjs' {
  import type { Icon } from '@tabler/icons-react';

  const icon: Icon;
  export default icon;
}
