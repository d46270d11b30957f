/** Short words about what was done. Problems stand where they belong, not here. */
import { createContext, type ReactNode, useCallback, useContext, useState } from 'react';
import { Icon } from './icons';

const Context = createContext<(text: string) => void>(() => {});

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<{ id: number; text: string }[]>([]);
  const show = useCallback((text: string) => {
    const id = performance.now();
    setToasts((all) => [...all.slice(-3), { id, text }]);
    setTimeout(() => setToasts((all) => all.filter((toast) => toast.id !== id)), 4500);
  }, []);
  return (
    <Context value={show}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <p key={toast.id}>
            <Icon name="ok" />
            {toast.text}
          </p>
        ))}
      </div>
    </Context>
  );
}

export const useToast = (): ((text: string) => void) => useContext(Context);
