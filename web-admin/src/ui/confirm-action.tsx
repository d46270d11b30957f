/** A dialog that asks before a change, makes it, and closes when it is done. */
import type { ReactNode } from 'react';
import { type Action, useAction } from '../api/queries';
import { Confirm } from './dialog';
import { useToast } from './toast';

export function ConfirmAction<T>({
  action,
  stale,
  done,
  onClose,
  ...dialog
}: {
  title: string;
  submit: string;
  danger?: boolean;
  /** A text that must be typed before. */
  type?: string;
  action: Action;
  /** What is out of date afterwards. */
  stale: readonly (readonly string[])[];
  /** What to say when it is done, if anything is to be said. */
  done?(answer: T): string;
  onClose(): void;
  children: ReactNode;
}) {
  const toast = useToast();
  const change = useAction<T>(stale);
  return (
    <Confirm
      {...dialog}
      busy={change.isPending}
      problem={change.error}
      onClose={onClose}
      onSubmit={() =>
        change.mutate(action, {
          onSuccess: (answer) => {
            if (done) toast(done(answer));
            onClose();
          },
        })
      }
    />
  );
}
