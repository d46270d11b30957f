/** Short words about what was done. Problems stand where they belong, not here. */
import { Notifications, notifications } from '@mantine/notifications';
import type { ReactNode } from 'react';
import { useT } from '../i18n';
import { Icon } from './icons';

export function ToastProvider({ children }: { children: ReactNode }) {
  return (
    <>
      <Notifications limit={4} autoClose={4500} containerWidth={380} />
      {children}
    </>
  );
}

/** Shows a sentence for some seconds; announced without interrupting what is being read. */
export function useToast(): (text: string) => void {
  const t = useT();
  return (message) => {
    notifications.show({
      message,
      color: 'green',
      icon: <Icon name="ok" />,
      role: 'status',
      closeButtonProps: { 'aria-label': t.common.close },
    });
  };
}
