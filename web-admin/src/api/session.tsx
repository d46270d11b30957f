/** Who is logged in. A session that ended is asked for again above the page, which stays as it was. */
import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';
import { call, get, onSessionLost, type Problem, setCsrf } from './client';
import { live } from './queries';
import { type Access, ROLES, type Role, type Session } from './types';

export interface SessionValue {
  /** `null`: nobody is logged in, `undefined`: not known yet. */
  session: Session | null | undefined;
  /** A session was there and has ended: the page waits behind the login. */
  lost: boolean;
  error: Problem | null;
  login(name: string, password: string): Promise<void>;
  adopt(session: Session): void;
  logout(): Promise<void>;
  reload(): void;
}

const Context = createContext<SessionValue | null>(null);

export function SessionProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [session, setSession] = useState<Session | null>();
  const [lost, setLost] = useState(false);
  const [error, setError] = useState<Problem | null>(null);
  const [attempt, setAttempt] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `attempt` asks again
  useEffect(() => {
    const abort = new AbortController();
    call<Session>('GET', '/session', { open: true, signal: abort.signal })
      .then((found) => {
        setCsrf(found.csrf);
        setSession(found);
        setError(null);
      })
      .catch((problem: Problem) => {
        if (abort.signal.aborted) return;
        // 403: the API is closed, and /access tells why.
        if (problem.status === 401 || problem.status === 403) setSession(null);
        else setError(problem);
      });
    return () => abort.abort();
  }, [attempt]);

  useEffect(() => {
    onSessionLost(() => setLost(true));
  }, []);

  const seen = useSeen();
  // No stream while nobody is logged in, or looks.
  const on = session != null && !lost && seen;
  useEffect(() => {
    if (on) live.start();
    else live.stop();
  }, [on]);

  const value = useMemo<SessionValue>(() => {
    const adopt = (next: Session) => {
      // Somebody else must not see what the cache holds of the one before.
      if (session && session.account.name !== next.account.name) client.clear();
      setCsrf(next.csrf);
      setSession(next);
      setLost(false);
      void client.invalidateQueries();
    };
    return {
      session,
      lost,
      error,
      adopt,
      login: async (name, password) => {
        adopt(await call<Session>('POST', '/session', { body: { name, password }, open: true }));
      },
      logout: async () => {
        await call('DELETE', '/session', { open: true }).catch((problem: Problem) => {
          if (problem.status !== 401) throw problem;
        });
        setCsrf(null);
        setSession(null);
        setLost(false);
        client.clear();
      },
      reload: () => setAttempt((n) => n + 1),
    };
  }, [session, lost, error, client]);
  return <Context value={value}>{children}</Context>;
}

/** A tab in the background keeps one of the few connections that a browser has for a node. */
const HIDDEN_FOR_MS = 20_000;

/** Whether the tab is in sight, or was a moment ago. */
function useSeen(): boolean {
  const [seen, setSeen] = useState(true);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const follow = () => {
      clearTimeout(timer);
      if (document.visibilityState === 'hidden') {
        timer = setTimeout(() => setSeen(false), HIDDEN_FOR_MS);
      } else {
        setSeen(true);
      }
    };
    document.addEventListener('visibilitychange', follow);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', follow);
    };
  }, []);
  return seen;
}

export function useSession(): SessionValue {
  const value = useContext(Context);
  if (value === null) throw new Error('no SessionProvider above');
  return value;
}

/** Whether the one who is logged in has at least `role`. */
export function useCan(role: Role): boolean {
  const mine = useSession().session?.account.role;
  return mine !== undefined && ROLES.indexOf(mine) >= ROLES.indexOf(role);
}

export const getAccess = (): Promise<Access> => get<Access>('/access');
