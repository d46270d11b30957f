import './ui/mantine.css';
import 'virtual:theme.css';
import './ui/style.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/queries';
import { SessionProvider } from './api/session';
import { App } from './app';
import { I18nProvider } from './i18n';
import { schemes } from './lib/scheme';
import { theme } from './ui/theme';
import { ToastProvider } from './ui/toast';

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root');
createRoot(root).render(
  <StrictMode>
    {/* Without a <style> of its own: see vite.config.ts. */}
    <MantineProvider
      theme={theme}
      colorSchemeManager={schemes}
      defaultColorScheme="auto"
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <QueryClientProvider client={queryClient}>
        <I18nProvider>
          <ToastProvider>
            <SessionProvider>
              <App />
            </SessionProvider>
          </ToastProvider>
        </I18nProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
