/** Short words about what was done. Problems stand where they belong, not here. */
import { Notifications, notifications } from '@mantine/notifications';
import type { ReactNode } from 'react';
import { Icon } from './icons';

export function ToastProvider({ children }: { children: ReactNode }) {
  return (
    <>
      <Notifications limit={4} autoClose={4500} containerWidth={380} />
      {children}
    </>
  );
}

const show = (message: string) => {
  // Announced without interrupting what is being read.
  notifications.show({ message, color: 'green', icon: <Icon name="ok" />, role: 'status' });
};

export const useToast = (): ((text: string) => void) => show;
