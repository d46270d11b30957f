/** Dialogs of Mantine: the focus stays within, Escape closes, the page behind does not scroll. */
import { Modal } from '@mantine/core';
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import type { Problem } from '../api/client';
import { useT } from '../i18n';
import { ActionProblem, Button } from './basics';
import { TextField } from './fields';

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
  // A dialog goes by not being rendered any more; the focus goes back to where it came from.
  const before = useRef(document.activeElement);
  useEffect(
    () => () => {
      if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
    },
    [],
  );
  return (
    <Modal
      opened
      title={title}
      onClose={onClose}
      size={wide ? 880 : 560}
      closeOnEscape={!busy}
      closeOnClickOutside={false}
      returnFocus={false}
      // Not a banner of the page, as a <header> would be.
      attributes={{ header: { role: 'presentation' } }}
      closeButtonProps={{ 'aria-label': t.common.close, disabled: busy ?? false }}
    >
      {children}
    </Modal>
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
