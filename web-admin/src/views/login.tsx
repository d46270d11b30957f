/** Who are you? */
import { NativeSelect, Paper } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Link } from 'wouter';
import { asProblem, type Problem } from '../api/client';
import { getAccess, useSession } from '../api/session';
import { LANGUAGES, type Language, useI18n, useT } from '../i18n';
import { Button, Notice, ProblemBox, Title } from '../ui/basics';
import { TextField } from '../ui/fields';

export function LoginView() {
  const t = useT();
  const access = useQuery({ queryKey: ['access'], queryFn: getAccess });
  return (
    <Alone>
      <Title text={t.login.title}>{t.login.title}</Title>
      {access.error && <ProblemBox error={access.error} retry={() => void access.refetch()} />}
      {access.data?.setup_needed && <Notice>{t.login.setupNeeded}</Notice>}
      {access.data?.closed && (
        <Notice tone="bad" role="alert">
          {t.login.closed(access.data.closed)}
        </Notice>
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
      <Paper withBorder radius="md" className="stack pad">
        <p className="brand">
          <Link href="/">IdGen</Link>
        </p>
        {children}
      </Paper>
      <NativeSelect
        size="xs"
        aria-label={t.app.language}
        data={Object.entries(LANGUAGES).map(([value, label]) => ({ value, label }))}
        value={language}
        onChange={(event) => setLanguage(event.currentTarget.value as Language)}
      />
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
