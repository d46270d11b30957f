/** Inputs of Mantine with a label, a hint and an error, tied together for screen readers. */
import {
  Autocomplete,
  Checkbox,
  FileInput,
  NativeSelect,
  SegmentedControl,
  Select,
  Textarea,
  TextInput,
} from '@mantine/core';
import { type ReactNode, useEffect, useId, useRef } from 'react';

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | undefined;
}

/** What is the same for all: small, the hint below the input, no asterisk. */
const common = ({ label, hint, error }: FieldProps) => ({
  label,
  description: hint,
  error,
  size: 'xs',
  withAsterisk: false,
  inputWrapperOrder: ['label' as const, 'input' as const, 'description' as const, 'error' as const],
});

interface TextProps extends FieldProps {
  value: string;
  onChange(value: string): void;
  type?: 'text' | 'password' | 'search' | 'datetime-local';
  placeholder?: string;
  mono?: boolean;
  /** Ids are up to 2^63: digits in a text input, not a number input, which is exact to 2^53. */
  numeric?: boolean;
  disabled?: boolean | undefined;
  autoComplete?: string;
  autoFocus?: boolean;
  required?: boolean;
  list?: string;
  /** What the input is about, as the API calls it: an error of the node leads here. */
  name?: string;
}

export function TextField({ label, hint, error, value, onChange, ...rest }: TextProps) {
  const { type = 'text', mono, numeric, autoComplete = 'off', autoFocus, ...other } = rest;
  const ref = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (autoFocus) ref.current?.focus();
  }, [autoFocus]);
  return (
    <TextInput
      {...common({ label, hint, error })}
      {...other}
      ref={ref}
      type={type}
      classNames={mono || numeric ? { input: 'mono' } : undefined}
      inputMode={numeric ? 'numeric' : undefined}
      autoComplete={autoComplete}
      data-autofocus={autoFocus || undefined}
      spellCheck={false}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** A text with proposals, of which the fitting ones are listed while one types. */
export function SuggestField({
  label,
  hint,
  error,
  options,
  ...other
}: FieldProps & {
  value: string;
  onChange(value: string): void;
  options: string[];
  placeholder?: string;
  disabled?: boolean | undefined;
  name?: string;
}) {
  return (
    <Autocomplete
      {...common({ label, hint, error })}
      {...other}
      data={options}
      limit={50}
      withScrollArea={false}
      autoComplete="off"
      spellCheck={false}
    />
  );
}

export function AreaField({
  label,
  hint,
  error,
  onChange,
  rows = 3,
  mono,
  ...other
}: FieldProps & {
  value: string;
  onChange(value: string): void;
  rows?: number;
  mono?: boolean;
  disabled?: boolean;
  name?: string;
}) {
  return (
    <Textarea
      {...common({ label, hint, error })}
      {...other}
      rows={rows}
      resize="vertical"
      classNames={mono ? { input: 'mono' } : undefined}
      spellCheck={!mono}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/**
 * One of a list. The browser's own list, which phones show in their own way; `searchable`,
 * where a list may be long, is a combobox that finds by typing.
 */
export function SelectField<T extends string>({
  label,
  hint,
  error,
  value,
  onChange,
  options,
  searchable,
  ...other
}: FieldProps & {
  value: T;
  onChange(value: NoInfer<T>): void;
  options: readonly (readonly [NoInfer<T>, string])[];
  searchable?: boolean;
  disabled?: boolean | undefined;
  name?: string;
}) {
  const data = options.map(([key, text]) => ({ value: key as string, label: text }));
  return searchable ? (
    <Select
      {...common({ label, hint, error })}
      {...other}
      searchable
      allowDeselect={false}
      checkIconPosition="right"
      withScrollArea={false}
      // What is typed replaces what is chosen.
      onFocus={(event) => event.currentTarget.select()}
      onClick={(event) => event.currentTarget.select()}
      data={data}
      value={value}
      onChange={(chosen) => onChange((chosen ?? '') as T)}
    />
  ) : (
    <NativeSelect
      {...common({ label, hint, error })}
      {...other}
      data={data}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as T)}
    />
  );
}

export function CheckField({
  label,
  hint,
  checked,
  onChange,
  ...other
}: FieldProps & {
  checked: boolean;
  onChange(checked: boolean): void;
  disabled?: boolean | undefined;
  name?: string;
}) {
  const id = useId();
  return (
    <Checkbox
      {...other}
      id={id}
      size="xs"
      label={label}
      description={hint}
      aria-describedby={hint ? `${id}-description` : undefined}
      checked={checked}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

/** One of a few, side by side. */
export function Choice<T extends string>({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: T;
  onChange(value: NoInfer<T>): void;
  options: readonly (readonly [NoInfer<T>, string])[];
}) {
  return (
    <SegmentedControl
      className="choice"
      size="xs"
      aria-label={label}
      data={options.map(([key, text]) => ({ value: key, label: text }))}
      value={value}
      onChange={onChange}
    />
  );
}

/** A file of this computer. */
export function FileField({
  label,
  accept,
  onChange,
}: {
  label: string;
  accept: string;
  onChange(file: File | null): void;
}) {
  return (
    <FileInput
      {...common({ label })}
      accept={accept}
      placeholder={accept.replaceAll(',', ' ')}
      onChange={onChange}
    />
  );
}
