import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/queries';
import { SessionProvider } from './api/session';
import { App } from './app';
import { I18nProvider } from './i18n';
import { applyScheme, storedScheme } from './lib/scheme';
import './ui/style.css';
import { ToastProvider } from './ui/toast';

applyScheme(storedScheme());
const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <I18nProvider>
        <ToastProvider>
          <SessionProvider>
            <App />
          </SessionProvider>
        </ToastProvider>
      </I18nProvider>
    </QueryClientProvider>
  </StrictMode>,
);
