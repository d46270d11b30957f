/** Who are you? */
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Link } from 'wouter';
import { asProblem, type Problem } from '../api/client';
import { getAccess, useSession } from '../api/session';
import { LANGUAGES, type Language, useI18n, useT } from '../i18n';
import { Button, ProblemBox, Title } from '../ui/basics';
import { TextField } from '../ui/fields';

export function LoginView() {
  const t = useT();
  const access = useQuery({ queryKey: ['access'], queryFn: getAccess });
  return (
    <Alone>
      <Title text={t.login.title}>{t.login.title}</Title>
      {access.error && <ProblemBox error={access.error} retry={() => void access.refetch()} />}
      {access.data?.setup_needed && (
        <div className="notice">
          <p>{t.login.setupNeeded}</p>
        </div>
      )}
      {access.data?.closed && (
        <div className="problem" role="alert">
          <p>{t.login.closed(access.data.closed)}</p>
        </div>
      )}
      <LoginForm name="" />
    </Alone>
  );
}

/** The frame of a view that needs no account. */
export function Alone({ children }: { children: React.ReactNode }) {
  const { t, language, setLanguage } = useI18n();
  return (
    <main className="alone">
      <div className="card pad">
        <p className="brand">
          <Link href="/">IdGen</Link>
        </p>
        {children}
      </div>
      <label className="small">
        <span className="hidden">{t.app.language}</span>
        <select value={language} onChange={(event) => setLanguage(event.target.value as Language)}>
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </main>
  );
}

export function LoginForm({ name: first }: { name: string }) {
  const t = useT();
  const { login } = useSession();
  const [name, setName] = useState(first);
  const [password, setPassword] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(null);
    try {
      await login(name.trim(), password);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <form className="stack" onSubmit={send}>
      <TextField
        label={t.login.name}
        value={name}
        onChange={setName}
        autoComplete="username"
        autoFocus={first === ''}
        required
      />
      <TextField
        label={t.login.password}
        type="password"
        value={password}
        onChange={setPassword}
        autoComplete="current-password"
        autoFocus={first !== ''}
        required
      />
      {problem && <ProblemBox error={problem} />}
      <Button type="submit" kind="primary" busy={busy}>
        {t.login.submit}
      </Button>
    </form>
  );
}
