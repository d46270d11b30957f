/** The first account: the link with the token stands in the log of the node. */
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useLayoutEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { asProblem, call, type Problem } from '../api/client';
import { getAccess, useSession } from '../api/session';
import type { Session } from '../api/types';
import { useT } from '../i18n';
import { ActionProblem, Button, Notice, ProblemBox, Title } from '../ui/basics';
import { TextField } from '../ui/fields';
import { Alone } from './login';

export default function SetupView() {
  const t = useT();
  const { adopt } = useSession();
  const [, go] = useLocation();
  const access = useQuery({ queryKey: ['access'], queryFn: getAccess });
  const [token, setToken] = useState(tokenInAddress);
  // Before it is painted: nobody sees the token in the address.
  useLayoutEffect(() => {
    const take = () => {
      const found = tokenInAddress();
      if (found === '') return;
      setToken(found);
      // Not to stay in the history of the browser.
      window.history.replaceState(null, '', '/setup');
    };
    take();
    window.addEventListener('hashchange', take);
    return () => window.removeEventListener('hashchange', take);
  }, []);
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const different = again !== '' && again !== password;
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || password !== again) return;
    setBusy(true);
    setProblem(null);
    try {
      const body = { token: token.trim(), name: name.trim(), password };
      adopt(await call<Session>('POST', '/setup', { body, open: true }));
      go('/', { replace: true });
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <Alone>
      <Title text={t.setup.title} sub={t.setup.hint}>
        {t.setup.title}
      </Title>
      {access.error && <ProblemBox error={access.error} retry={() => void access.refetch()} />}
      {access.data && !access.data.setup_needed ? (
        <>
          <Notice>{t.setup.done}</Notice>
          <Link href="/login">{t.login.title}</Link>
        </>
      ) : (
        <form className="stack" onSubmit={send} noValidate>
          <TextField
            label={t.setup.token}
            value={token}
            onChange={setToken}
            mono
            required
            error={problem?.field === 'token' ? problem.detail : undefined}
          />
          <TextField
            label={t.login.name}
            value={name}
            onChange={setName}
            autoComplete="username"
            autoFocus
            required
            error={problem?.field === 'name' ? problem.detail : undefined}
          />
          <TextField
            label={t.login.password}
            type="password"
            value={password}
            onChange={setPassword}
            autoComplete="new-password"
            hint={t.setup.passwordHint}
            required
            error={problem?.field === 'password' ? problem.detail : undefined}
          />
          <TextField
            label={t.setup.again}
            type="password"
            value={again}
            onChange={setAgain}
            autoComplete="new-password"
            required
            error={different ? t.setup.different : undefined}
          />
          <ActionProblem problem={problem} />
          <Button
            type="submit"
            kind="primary"
            busy={busy}
            disabled={password === '' || password !== again || name.trim() === '' || token === ''}
          >
            {t.setup.submit}
          </Button>
        </form>
      )}
    </Alone>
  );
}

/** Behind the `#`, which is sent to nobody. */
function tokenInAddress(): string {
  const text = window.location.hash.slice(1);
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
