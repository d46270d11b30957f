/** Dialogs: the browser's own, so focus, Escape and inert surroundings come with it. */
import { type FormEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import type { Problem } from '../api/client';
import { useT } from '../i18n';
import { ActionProblem, Button } from './basics';
import { TextField } from './fields';
import { Icon } from './icons';

export function Dialog({
  title,
  onClose,
  busy,
  wide,
  children,
}: {
  title: string;
  onClose(): void;
  busy?: boolean;
  wide?: boolean;
  children: ReactNode;
}) {
  const t = useT();
  const id = useId();
  const ref = useRef<HTMLDialogElement>(null);
  // A layout effect: it is closed while it is still in the page, so that the focus goes
  // back to where it was, and it is open before what is in it asks for the focus.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      className={wide ? 'wide' : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!busy) onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button
          type="button"
          className="btn quiet"
          aria-label={t.common.close}
          disabled={busy}
          onClick={onClose}
        >
          <Icon name="close" />
        </button>
      </header>
      <div className="body">{children}</div>
    </dialog>
  );
}

/** A form in a dialog, with its problem and its two buttons. */
export function FormDialog({
  title,
  submit,
  danger,
  busy,
  disabled,
  problem,
  wide,
  onSubmit,
  onClose,
  children,
}: {
  title: string;
  submit: string;
  danger?: boolean;
  busy: boolean;
  disabled?: boolean;
  problem: Problem | null;
  wide?: boolean;
  onSubmit(): void;
  onClose(): void;
  children: ReactNode;
}) {
  const t = useT();
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!busy && !disabled) onSubmit();
  };
  return (
    <Dialog title={title} onClose={onClose} busy={busy} wide={wide ?? false}>
      <form onSubmit={send} noValidate className="stack">
        {children}
        <ActionProblem problem={problem} />
        <div className="row end">
          <Button onClick={onClose} disabled={busy}>
            {t.common.cancel}
          </Button>
          <Button
            type="submit"
            kind={danger ? 'danger' : 'primary'}
            busy={busy}
            disabled={disabled ?? false}
          >
            {submit}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Asks before something that hurts; with `type`, that text must be typed. */
export function Confirm({
  title,
  submit,
  danger,
  type,
  busy,
  problem,
  onSubmit,
  onClose,
  children,
}: {
  title: string;
  submit: string;
  danger?: boolean;
  type?: string;
  busy: boolean;
  problem: Problem | null;
  onSubmit(): void;
  onClose(): void;
  children: ReactNode;
}) {
  const t = useT();
  const [typed, setTyped] = useState('');
  return (
    <FormDialog
      title={title}
      submit={submit}
      danger={danger ?? false}
      busy={busy}
      problem={problem}
      disabled={type !== undefined && typed !== type}
      onSubmit={onSubmit}
      onClose={onClose}
    >
      {children}
      {type !== undefined && (
        <TextField
          label={t.common.typeName(type)}
          value={typed}
          onChange={setTyped}
          mono
          autoFocus
        />
      )}
    </FormDialog>
  );
}
