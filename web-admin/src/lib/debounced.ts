import { useDebouncedValue } from '@mantine/hooks';

/** `value`, once it has not changed for `ms`. */
export const useDebounced = <T>(value: T, ms: number): T => useDebouncedValue(value, ms)[0];
