/** Accounts, sessions, tokens, and one's own password. */
import { Code, Table } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import type { Problem } from '../api/client';
import { useAccessList, useAction } from '../api/queries';
import { useCan, useSession } from '../api/session';
import {
  type Account,
  type Caller,
  ROLES,
  type Role,
  type SessionInfo,
  TOKEN_ROLES,
  type Token,
  type TokenRole,
} from '../api/types';
import { useT } from '../i18n';
import {
  ActionProblem,
  Badge,
  Button,
  Card,
  CopyButton,
  Empty,
  Loading,
  Notice,
  ProblemBox,
  Time,
  Title,
} from '../ui/basics';
import { ConfirmAction } from '../ui/confirm-action';
import { Dialog, FormDialog } from '../ui/dialog';
import { CheckField, SelectField, TextField } from '../ui/fields';
import { useToast } from '../ui/toast';

export default function AccessView() {
  const t = useT();
  const { session } = useSession();
  const administer = useCan('administer');
  const [password, setPassword] = useState(false);
  return (
    <>
      <Title
        text={t.nav.access}
        sub={session && t.access.you(session.account.name, t.roles[session.account.role])}
        actions={
          session?.how === 'session' && (
            <Button onClick={() => setPassword(true)}>{t.access.password}</Button>
          )
        }
      >
        {t.nav.access}
      </Title>
      {administer ? (
        <>
          <Accounts />
          <Tokens />
        </>
      ) : (
        <Notice>{t.access.limited(t.roles.administer)}</Notice>
      )}
      <Sessions />
      {password && <PasswordDialog onClose={() => setPassword(false)} />}
    </>
  );
}

const fieldError = (problem: Problem | null, field: string) =>
  problem?.field === field ? problem.detail : undefined;

function Accounts() {
  const t = useT();
  const { data, error, refetch } = useAccessList<Account>('accounts');
  const [open, setOpen] = useState<{
    what: 'new' | 'change' | 'remove';
    account: Account | null;
  } | null>(null);
  const close = () => setOpen(null);
  return (
    <Card
      title={t.access.accounts}
      flush
      actions={
        <Button icon="plus" onClick={() => setOpen({ what: 'new', account: null })}>
          {t.access.newAccount}
        </Button>
      }
    >
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data && (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t.common.name}</Table.Th>
              <Table.Th scope="col">{t.access.role}</Table.Th>
              <Table.Th scope="col">{t.common.state}</Table.Th>
              <Table.Th scope="col">{t.access.lastLogin}</Table.Th>
              <Table.Th scope="col" className="wide-only">
                {t.common.created}
              </Table.Th>
              <Table.Th scope="col">
                <span className="hidden">{t.common.actions}</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.map((account) => (
              <Table.Tr key={account.name} className={account.disabled ? 'dim' : undefined}>
                <Table.Th scope="row">
                  <span className="cut">{account.name}</span>
                </Table.Th>
                <Table.Td>{t.roles[account.role]}</Table.Td>
                <Table.Td>
                  <Badge tone={account.disabled ? 'mute' : 'ok'}>
                    {account.disabled ? t.access.disabled : t.access.enabled}
                  </Badge>
                </Table.Td>
                <Table.Td>
                  <Time ms={account.last_login_ms} />
                </Table.Td>
                <Table.Td className="wide-only">
                  <Time ms={account.created_ms} />
                </Table.Td>
                <Table.Td>
                  <div className="row end">
                    <Button
                      aria-label={t.access.changeOf(account.name)}
                      onClick={() => setOpen({ what: 'change', account })}
                    >
                      {t.common.change}
                    </Button>
                    <Button
                      kind="danger"
                      aria-label={t.access.removeOf(account.name)}
                      onClick={() => setOpen({ what: 'remove', account })}
                    >
                      {t.common.remove}
                    </Button>
                  </div>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {open?.what === 'new' && <AccountDialog account={null} onClose={close} />}
      {open?.what === 'change' && <AccountDialog account={open.account} onClose={close} />}
      {open?.what === 'remove' && open.account && (
        <RemoveAccount account={open.account} onClose={close} />
      )}
    </Card>
  );
}

const STALE_ACCOUNTS = [['accounts'], ['sessions'], ['audit']] as const;

function AccountDialog({ account, onClose }: { account: Account | null; onClose(): void }) {
  const t = useT();
  const toast = useToast();
  const [name, setName] = useState(account?.name ?? '');
  const [role, setRole] = useState<Role>(account?.role ?? 'view');
  const [disabled, setDisabled] = useState(account?.disabled ?? false);
  const [password, setPassword] = useState('');
  const save = useAction<Account>(STALE_ACCOUNTS);
  const changed = {
    ...(role !== account?.role ? { role } : {}),
    ...(disabled !== account?.disabled ? { disabled } : {}),
    ...(password !== '' ? { password } : {}),
  };
  const ready = account ? Object.keys(changed).length > 0 : name.trim() !== '' && password !== '';
  return (
    <FormDialog
      title={account ? t.access.changeOf(account.name) : t.access.newAccount}
      submit={account ? t.common.save : t.access.create}
      busy={save.isPending}
      disabled={!ready}
      problem={save.error}
      onClose={onClose}
      onSubmit={() =>
        save.mutate(
          account
            ? {
                method: 'PATCH',
                path: `/accounts/${encodeURIComponent(account.name)}`,
                body: { version: account.version, ...changed },
              }
            : { method: 'POST', path: '/accounts', body: { name: name.trim(), role, password } },
          {
            onSuccess: () => {
              toast(t.common.saved);
              onClose();
            },
          },
        )
      }
    >
      {!account && (
        <TextField
          label={t.common.name}
          value={name}
          onChange={setName}
          error={fieldError(save.error, 'name')}
          autoFocus
          required
        />
      )}
      <SelectField
        label={t.access.role}
        value={role}
        onChange={setRole}
        hint={t.access.roleHints[role]}
        error={fieldError(save.error, 'role')}
        options={ROLES.map((each) => [each, t.roles[each]] as const)}
      />
      <TextField
        label={account ? t.access.newPassword : t.login.password}
        type="password"
        value={password}
        onChange={setPassword}
        hint={account ? t.access.newPasswordHint : t.setup.passwordHint}
        error={fieldError(save.error, 'password')}
        autoComplete="new-password"
      />
      {account && (
        <CheckField
          label={t.access.disable}
          hint={t.access.disableHint}
          checked={disabled}
          onChange={setDisabled}
        />
      )}
    </FormDialog>
  );
}

function RemoveAccount({ account, onClose }: { account: Account; onClose(): void }) {
  const t = useT();
  return (
    <ConfirmAction
      title={t.access.removeOf(account.name)}
      submit={t.common.remove}
      danger
      type={account.name}
      action={{ method: 'DELETE', path: `/accounts/${encodeURIComponent(account.name)}` }}
      stale={STALE_ACCOUNTS}
      done={() => t.access.removed(account.name)}
      onClose={onClose}
    >
      <p>{t.access.removeExplain}</p>
    </ConfirmAction>
  );
}

function Sessions() {
  const t = useT();
  const { data, error, refetch } = useAccessList<SessionInfo>('sessions');
  const { logout } = useSession();
  const end = useAction([['sessions']]);
  return (
    <Card title={t.access.sessions} flush>
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      <ActionProblem problem={end.error} />
      {!data && !error && <Loading />}
      {data?.length === 0 && <Empty>{t.access.noSessions}</Empty>}
      {data && data.length > 0 && (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t.access.account}</Table.Th>
              <Table.Th scope="col">{t.access.where}</Table.Th>
              <Table.Th scope="col">{t.access.lastUsed}</Table.Th>
              <Table.Th scope="col" className="wide-only">
                {t.access.expires}
              </Table.Th>
              <Table.Th scope="col">
                <span className="hidden">{t.common.actions}</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.map((each) => (
              <Table.Tr key={each.id}>
                <Table.Th scope="row">
                  {each.account} {each.current && <Badge tone="info">{t.access.current}</Badge>}
                </Table.Th>
                <Table.Td className="any">
                  {each.address} <span className="mute small">{each.agent.slice(0, 120)}</span>
                </Table.Td>
                <Table.Td>
                  <Time ms={each.last_used_ms} />
                </Table.Td>
                <Table.Td className="wide-only">
                  <Time ms={each.expires_ms} />
                </Table.Td>
                <Table.Td>
                  <div className="row end">
                    <Button
                      busy={end.isPending && end.variables?.path.endsWith(`/${each.id}`)}
                      aria-label={each.current ? undefined : t.access.endOf(each.account)}
                      onClick={() =>
                        each.current
                          ? void logout().catch(() => {})
                          : end.mutate({
                              method: 'DELETE',
                              path: `/sessions/${encodeURIComponent(String(each.id))}`,
                            })
                      }
                    >
                      {each.current ? t.app.logout : t.access.end}
                    </Button>
                  </div>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Card>
  );
}

/** How often the page asks what callers took, in milliseconds. */
const CALLERS_EVERY = 5_000;

/** Ids per second of each caller on the node that answers, between the last two answers. */
function useRates(): Map<string, number> {
  const { data, dataUpdatedAt } = useAccessList<Caller>('callers', CALLERS_EVERY);
  const last = useRef<{ at: number; ids: Map<string, number> } | null>(null);
  const [rates, setRates] = useState(new Map<string, number>());
  useEffect(() => {
    if (!data) return;
    const before = last.current;
    const ids = new Map(data.map((each) => [each.name, each.taken]));
    last.current = { at: dataUpdatedAt, ids };
    const seconds = before && (dataUpdatedAt - before.at) / 1_000;
    if (!before || !seconds || seconds <= 0) return;
    const rate = ([name, now]: [string, number]): [string, number] => [
      name,
      // Another node, or one that started anew, may count less.
      Math.max(0, now - (before.ids.get(name) ?? 0)) / seconds,
    ];
    setRates(new Map([...ids].map(rate)));
  }, [data, dataUpdatedAt]);
  return rates;
}

function Tokens() {
  const t = useT();
  const rates = useRates();
  const { data, error, refetch } = useAccessList<Token>('tokens');
  const [adding, setAdding] = useState(false);
  const [secret, setSecret] = useState<{ token: Token; secret: string } | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  return (
    <Card
      title={t.access.tokens}
      flush
      actions={
        <Button icon="plus" onClick={() => setAdding(true)}>
          {t.access.newToken}
        </Button>
      }
    >
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data?.length === 0 && <Empty>{t.access.noTokens}</Empty>}
      {data && data.length > 0 && (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t.common.name}</Table.Th>
              <Table.Th scope="col">{t.access.role}</Table.Th>
              <Table.Th scope="col">{t.access.tokenTypes}</Table.Th>
              <Table.Th scope="col" className="wide-only">
                {t.access.quota}
              </Table.Th>
              <Table.Th scope="col" className="wide-only" title={t.access.rateHint}>
                {t.access.rate}
              </Table.Th>
              <Table.Th scope="col">{t.access.lastUsed}</Table.Th>
              <Table.Th scope="col">{t.access.expires}</Table.Th>
              <Table.Th scope="col" className="wide-only">
                {t.access.createdBy}
              </Table.Th>
              <Table.Th scope="col">
                <span className="hidden">{t.common.actions}</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.map((each) => (
              <Table.Tr key={each.id} className={each.revoked ? 'dim' : undefined}>
                <Table.Th scope="row">
                  <span className="cut">{each.name}</span>
                </Table.Th>
                <Table.Td>
                  {t.roles[each.role]}{' '}
                  {each.certificate && <Badge tone="info">{t.access.certificate}</Badge>}
                </Table.Td>
                <Table.Td className="any mono">
                  {each.types.length === 0 ? t.common.all : each.types.join(' ')}
                </Table.Td>
                <Table.Td className="wide-only">
                  {each.quota === null ? (
                    <span className="mute">{t.access.noQuota}</span>
                  ) : (
                    t.access.perSecond(each.quota)
                  )}
                </Table.Td>
                <Table.Td className="wide-only">
                  {each.revoked || rates.get(each.name) === undefined
                    ? '–'
                    : Math.round(rates.get(each.name) ?? 0).toLocaleString('en')}
                </Table.Td>
                <Table.Td>
                  <Time ms={each.last_used_ms} />
                </Table.Td>
                <Table.Td>
                  {each.revoked ? (
                    <Badge tone="mute">{t.access.revoked}</Badge>
                  ) : each.expires_ms === null ? (
                    <span className="mute">{t.common.never}</span>
                  ) : (
                    <Time ms={each.expires_ms} />
                  )}
                </Table.Td>
                <Table.Td className="wide-only">{each.created_by}</Table.Td>
                <Table.Td>
                  <div className="row end">
                    {!each.revoked && (
                      <Button
                        kind="danger"
                        aria-label={t.access.revokeOf(each.name)}
                        onClick={() => setRevoking(each)}
                      >
                        {t.access.revoke}
                      </Button>
                    )}
                  </div>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {adding && (
        <TokenDialog
          onClose={() => setAdding(false)}
          onMade={(made) => {
            setAdding(false);
            setSecret(made);
          }}
        />
      )}
      {secret && (
        <Dialog title={t.access.secretTitle(secret.token.name)} onClose={() => setSecret(null)}>
          <div className="stack">
            <p>{t.access.secretOnce}</p>
            <Code block data-testid="secret">
              {secret.secret}
            </Code>
            <div className="row end">
              <CopyButton text={secret.secret} label={t.common.copy} />
              <Button kind="primary" onClick={() => setSecret(null)}>
                {t.access.secretKept}
              </Button>
            </div>
          </div>
        </Dialog>
      )}
      {revoking && <RevokeDialog token={revoking} onClose={() => setRevoking(null)} />}
    </Card>
  );
}

const LIVES = { '7': 7, '30': 30, '90': 90, '365': 365, '': 0 } as const;

function TokenDialog({
  onClose,
  onMade,
}: {
  onClose(): void;
  onMade(made: { token: Token; secret: string }): void;
}) {
  const t = useT();
  const [name, setName] = useState('');
  const [role, setRole] = useState<TokenRole>('issue');
  const [quota, setQuota] = useState('');
  const [types, setTypes] = useState('');
  const [life, setLife] = useState<keyof typeof LIVES>('90');
  const make = useAction<{ token: Token; secret: string }>([['tokens'], ['audit']]);
  const list = types.split(/[\s,]+/).filter(Boolean);
  const quotaIsLegal =
    /^\s*\d{0,10}\s*$/.test(quota) &&
    (quota.trim() === '' || (Number(quota) >= 1 && Number(quota) <= 1e9));
  return (
    <FormDialog
      title={t.access.newToken}
      submit={t.access.create}
      busy={make.isPending}
      disabled={name.trim() === '' || !quotaIsLegal}
      problem={make.error}
      onClose={onClose}
      onSubmit={() =>
        make.mutate(
          {
            method: 'POST',
            path: '/tokens',
            body: {
              name: name.trim(),
              role,
              ...(list.length > 0 ? { types: list } : {}),
              ...(quota.trim() === '' ? {} : { quota: Number(quota) }),
              ...(life === '' ? {} : { expires_ms: Date.now() + LIVES[life] * 86_400_000 }),
            },
          },
          { onSuccess: onMade },
        )
      }
    >
      <TextField
        label={t.common.name}
        value={name}
        onChange={setName}
        error={fieldError(make.error, 'name')}
        autoFocus
        required
      />
      <SelectField
        label={t.access.role}
        value={role}
        onChange={setRole}
        hint={t.access.roleHints[role]}
        options={TOKEN_ROLES.map((each) => [each, t.roles[each]] as const)}
      />
      <TextField
        label={t.access.tokenTypes}
        hint={t.access.tokenTypesHint}
        value={types}
        onChange={setTypes}
        error={fieldError(make.error, 'types')}
        mono
      />
      <TextField
        label={t.access.quota}
        hint={t.access.quotaHint}
        value={quota}
        onChange={setQuota}
        error={fieldError(make.error, 'quota') ?? (quotaIsLegal ? undefined : t.access.quotaWrong)}
      />
      <SelectField
        label={t.access.expires}
        value={life}
        onChange={setLife}
        error={fieldError(make.error, 'expires_ms')}
        options={[
          ['7', t.access.days(7)],
          ['30', t.access.days(30)],
          ['90', t.access.days(90)],
          ['365', t.access.days(365)],
          ['', t.common.never],
        ]}
      />
    </FormDialog>
  );
}

function RevokeDialog({ token, onClose }: { token: Token; onClose(): void }) {
  const t = useT();
  return (
    <ConfirmAction
      title={t.access.revokeOf(token.name)}
      submit={t.access.revoke}
      danger
      action={{ method: 'DELETE', path: `/tokens/${encodeURIComponent(String(token.id))}` }}
      stale={[['tokens'], ['audit']]}
      onClose={onClose}
    >
      <p>{t.access.revokeExplain}</p>
    </ConfirmAction>
  );
}

function PasswordDialog({ onClose }: { onClose(): void }) {
  const t = useT();
  const toast = useToast();
  const [old, setOld] = useState('');
  const [next, setNext] = useState('');
  const [again, setAgain] = useState('');
  const save = useAction([['sessions']]);
  return (
    <FormDialog
      title={t.access.password}
      submit={t.common.save}
      busy={save.isPending}
      disabled={old === '' || next === '' || next !== again}
      problem={save.error}
      onClose={onClose}
      onSubmit={() =>
        save.mutate(
          { method: 'POST', path: '/session/password', body: { old, new: next } },
          {
            onSuccess: () => {
              toast(t.access.passwordChanged);
              onClose();
            },
          },
        )
      }
    >
      <p className="hint">{t.access.passwordHint}</p>
      <TextField
        label={t.access.oldPassword}
        type="password"
        value={old}
        onChange={setOld}
        autoComplete="current-password"
        error={fieldError(save.error, 'old')}
        autoFocus
      />
      <TextField
        label={t.access.newPassword}
        type="password"
        value={next}
        onChange={setNext}
        autoComplete="new-password"
        error={fieldError(save.error, 'new')}
      />
      <TextField
        label={t.setup.again}
        type="password"
        value={again}
        onChange={setAgain}
        autoComplete="new-password"
        error={again !== '' && again !== next ? t.setup.different : undefined}
      />
    </FormDialog>
  );
}
