/** Inputs with a label, a hint and an error, tied together for screen readers. */
import { type ReactNode, useEffect, useId, useRef } from 'react';

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | undefined;
}

function Field({
  label,
  hint,
  error,
  children,
}: FieldProps & {
  children(ids: {
    id: string;
    'aria-describedby': string | undefined;
    'aria-invalid': true | undefined;
  }): ReactNode;
}) {
  const id = useId();
  const about = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ');
  return (
    <div className={error ? 'field wrong' : 'field'}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        'aria-describedby': about || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {hint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p className="error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

interface TextProps extends FieldProps {
  value: string;
  onChange(value: string): void;
  type?: 'text' | 'password' | 'search' | 'datetime-local';
  placeholder?: string;
  mono?: boolean;
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
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <input
          {...ids}
          {...other}
          ref={ref}
          type={type}
          className={mono || numeric ? 'mono' : undefined}
          inputMode={numeric ? 'numeric' : undefined}
          autoComplete={autoComplete}
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function AreaField({
  label,
  hint,
  error,
  value,
  onChange,
  rows = 3,
  mono,
  disabled,
  name,
}: FieldProps & {
  value: string;
  onChange(value: string): void;
  rows?: number;
  mono?: boolean;
  disabled?: boolean;
  name?: string;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <textarea
          {...ids}
          rows={rows}
          name={name}
          disabled={disabled}
          className={mono ? 'mono' : undefined}
          spellCheck={!mono}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function SelectField<T extends string>({
  label,
  hint,
  error,
  value,
  onChange,
  options,
  disabled,
  name,
}: FieldProps & {
  value: T;
  onChange(value: NoInfer<T>): void;
  options: readonly (readonly [NoInfer<T>, string])[];
  disabled?: boolean | undefined;
  name?: string;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <select
          {...ids}
          name={name}
          disabled={disabled}
          value={value}
          onChange={(event) => onChange(event.target.value as T)}
        >
          {options.map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CheckField({
  label,
  hint,
  checked,
  onChange,
  disabled,
  name,
}: FieldProps & {
  checked: boolean;
  onChange(checked: boolean): void;
  disabled?: boolean | undefined;
  name?: string;
}) {
  const id = useId();
  return (
    <div className="field check">
      <input
        id={id}
        type="checkbox"
        name={name}
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      {hint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
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
  const name = useId();
  return (
    <fieldset className="choice" aria-label={label}>
      {options.map(([key, text]) => (
        <label key={key} className={key === value ? 'on' : undefined}>
          <input type="radio" name={name} checked={key === value} onChange={() => onChange(key)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
