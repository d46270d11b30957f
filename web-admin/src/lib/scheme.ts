/** The colour scheme: as the system has it, or as chosen. */
import { localStorageColorSchemeManager } from '@mantine/core';

export const SCHEMES = ['auto', 'light', 'dark'] as const;
export type Scheme = (typeof SCHEMES)[number];

/** Where the choice is kept; also in step with the other windows of this browser. */
export const schemes = localStorageColorSchemeManager({ key: 'idgen.scheme' });
