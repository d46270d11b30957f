/** The Redis instances: how they answer, what is on them, adding, draining, removing. */
import { Progress } from '@mantine/core';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { instancePath } from '../api/client';
import { useAction, useInstances, useOverview } from '../api/queries';
import { useCan } from '../api/session';
import type { Check, Instance } from '../api/types';
import { useT } from '../i18n';
import { bytes, count, micros } from '../lib/format';
import { NAME } from '../lib/rules';
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
  Title,
} from '../ui/basics';
import { ConfirmAction } from '../ui/confirm-action';
import { FormDialog } from '../ui/dialog';
import { CheckField, SelectField, TextField } from '../ui/fields';
import { useToast } from '../ui/toast';

const STALE = [['instances'], ['overview'], ['audit']] as const;

export default function RedisView() {
  const t = useT();
  const administer = useCan('administer');
  const { data, error, refetch } = useInstances();
  const [adding, setAdding] = useState(false);
  const here = decodeURIComponent(window.location.hash.slice(1));
  const loaded = data !== undefined;
  useEffect(() => {
    if (loaded && here) document.getElementById(here)?.scrollIntoView({ block: 'center' });
  }, [loaded, here]);
  return (
    <>
      <Title
        text={t.nav.redis}
        actions={
          <Button
            kind="primary"
            icon="plus"
            disabled={!administer}
            title={administer ? undefined : t.common.needs(t.roles.administer)}
            onClick={() => setAdding(true)}
          >
            {t.redis.add}
          </Button>
        }
      >
        {t.nav.redis}
      </Title>
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data?.items.length === 0 && <Empty>{t.redis.none}</Empty>}
      {data?.items.map((each) => (
        <InstanceCard key={each.id} each={each} all={data.items} />
      ))}
      {adding && <AddDialog onClose={() => setAdding(false)} />}
    </>
  );
}

function InstanceCard({ each, all }: { each: Instance; all: Instance[] }) {
  const t = useT();
  const operate = useCan('operate');
  const administer = useCan('administer');
  const { data } = useOverview();
  const state = data?.instances.find((other) => other.id === each.id);
  const test = useAction<Check>([['instances']]);
  const end = useAction(STALE);
  const [open, setOpen] = useState<'drain' | 'remove' | null>(null);
  const check = each.check;
  const reachable = check?.reachable ?? state?.reachable ?? false;
  const drained = all.some((other) => other.drain_to?.id === each.id);
  const types = state?.types ?? each.types;
  const needs = (role: 'operate' | 'administer', can: boolean) =>
    can ? undefined : t.common.needs(t.roles[role]);
  return (
    <div id={each.name} className="anchor">
      <Card
        title={
          <>
            {each.name} <span className="mute small">#{each.id}</span>{' '}
            <Badge tone={reachable ? 'ok' : 'bad'}>
              {reachable ? t.common.answers : t.common.down}
            </Badge>
          </>
        }
        actions={
          <>
            <Button
              busy={test.isPending}
              disabled={!administer}
              title={needs('administer', administer)}
              onClick={() =>
                test.mutate({
                  method: 'POST',
                  path: '/redis-instances/test',
                  body: { name: each.name },
                })
              }
            >
              {t.redis.test}
            </Button>
            {each.drain_to ? (
              <Button
                busy={end.isPending}
                disabled={!operate}
                title={needs('operate', operate)}
                onClick={() =>
                  end.mutate({ method: 'DELETE', path: instancePath(each.name, '/drain') })
                }
              >
                {t.redis.endDrain}
              </Button>
            ) : (
              <Button
                disabled={!operate || all.length < 2}
                title={
                  needs('operate', operate) ??
                  (all.length < 2 ? t.redis.drainNeedsOther : undefined)
                }
                onClick={() => setOpen('drain')}
              >
                {t.redis.drain}
              </Button>
            )}
            <Button
              kind="danger"
              disabled={!administer || types > 0 || drained}
              title={
                needs('administer', administer) ??
                (types > 0 ? t.redis.notEmpty : drained ? t.redis.isTarget : undefined)
              }
              onClick={() => setOpen('remove')}
            >
              {t.redis.remove}
            </Button>
          </>
        }
      >
        <dl className="facts spread" data-live>
          <div>
            <dt>{t.redis.url}</dt>
            <dd className="mono">
              {each.url} <CopyButton text={each.url} />
            </dd>
          </div>
          <div>
            <dt>{t.redis.latency}</dt>
            <dd>
              {check?.reachable
                ? micros(check.round_trip_us, t.units.ms)
                : (check?.error ?? state?.error ?? '—')}
            </dd>
          </div>
          <div>
            <dt>{t.redis.types}</dt>
            <dd>
              <Link href={`/types?instance=${each.id}`}>{count(types)}</Link>
            </dd>
          </div>
          <div>
            <dt>{t.redis.memory}</dt>
            <dd>{state?.memory_bytes == null ? '—' : bytes(state.memory_bytes)}</dd>
          </div>
          <div>
            <dt>{t.redis.role}</dt>
            <dd>{state?.role ?? '—'}</dd>
          </div>
          <div>
            <dt>{t.redis.version}</dt>
            <dd>{state?.version ?? '—'}</dd>
          </div>
          <div>
            <dt>{t.redis.history}</dt>
            <dd className="mono">{check?.history ?? state?.history ?? '—'}</dd>
          </div>
        </dl>
        {each.drain_to && <Draining each={each} left={types} />}
        {test.data && <Tested check={test.data} />}
        <ActionProblem problem={test.error} />
        <ActionProblem problem={end.error} />
      </Card>
      {open === 'drain' && <DrainDialog each={each} all={all} onClose={() => setOpen(null)} />}
      {open === 'remove' && <RemoveDialog each={each} onClose={() => setOpen(null)} />}
    </div>
  );
}

/** How far a drain is, from how many types there were when this page first saw it. */
function Draining({ each, left }: { each: Instance; left: number }) {
  const t = useT();
  const [most, setMost] = useState(left);
  if (left > most) setMost(left);
  const done = most - left;
  return (
    <div className="steps" role="status">
      <p>
        <Badge tone="info">
          {t.redis.drainsTo(each.drain_to?.name ?? `#${each.drain_to?.id}`)}
        </Badge>{' '}
        {left === 0 ? t.redis.drained : t.redis.left(count(left))}
      </p>
      {most > 0 && <Progress value={(100 * done) / most} aria-label={t.redis.progress} />}
    </div>
  );
}

function Tested({ check }: { check: Check }) {
  const t = useT();
  return (
    <Notice tone={check.reachable ? 'ok' : 'bad'} role="status">
      {check.reachable
        ? t.redis.testOk(micros(check.round_trip_us, t.units.ms))
        : t.redis.testBad(check.error ?? '')}
    </Notice>
  );
}

function AddDialog({ onClose }: { onClose(): void }) {
  const t = useT();
  const toast = useToast();
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [seen, setSeen] = useState(true);
  const [anyway, setAnyway] = useState(false);
  const [tested, setTested] = useState<{ url: string; check: Check } | null>(null);
  const test = useAction<Check>([]);
  const add = useAction(STALE);
  const check = tested?.url === url ? tested.check : null;
  const problem = add.error ?? test.error;
  const nameError = name !== '' && !NAME.test(name) ? t.rules.name : undefined;
  const at = (field: string) => (problem?.field === field ? problem.detail : undefined);
  return (
    <FormDialog
      title={t.redis.add}
      submit={t.redis.save}
      busy={add.isPending}
      disabled={!NAME.test(name) || !(check?.reachable || anyway)}
      problem={problem}
      onClose={onClose}
      onSubmit={() =>
        add.mutate(
          { method: 'POST', path: '/redis-instances', body: { name, url, test: !anyway } },
          {
            onSuccess: () => {
              toast(t.redis.added(name));
              onClose();
            },
          },
        )
      }
    >
      <TextField
        label={t.common.name}
        value={name}
        onChange={setName}
        error={nameError ?? at('name')}
        autoFocus
        mono
        required
      />
      <TextField
        label={t.redis.url}
        type={seen ? 'text' : 'password'}
        value={url}
        onChange={setUrl}
        hint={t.redis.urlHint}
        placeholder="redis://user:password@host:6379"
        error={at('url')}
        autoComplete="new-password"
        mono
        required
      />
      <CheckField label={t.common.showSecret} checked={seen} onChange={setSeen} />
      <div className="row">
        <Button
          busy={test.isPending}
          onClick={() =>
            test.mutate(
              { method: 'POST', path: '/redis-instances/test', body: { url } },
              { onSuccess: (found) => setTested({ url, check: found }) },
            )
          }
        >
          {t.redis.test}
        </Button>
        {!check && !anyway && <span className="hint">{t.redis.testFirst}</span>}
      </div>
      {check && <Tested check={check} />}
      <CheckField
        label={t.redis.anyway}
        hint={t.redis.anywayHint}
        checked={anyway}
        onChange={setAnyway}
      />
    </FormDialog>
  );
}

function DrainDialog({ each, all, onClose }: { each: Instance; all: Instance[]; onClose(): void }) {
  const t = useT();
  const toast = useToast();
  const others = all.filter((other) => other.id !== each.id && other.drain_to === null);
  // Of several, the operator chooses.
  const [to, setTo] = useState(others.length === 1 ? (others[0]?.name ?? '') : '');
  const drain = useAction(STALE);
  return (
    <FormDialog
      title={t.redis.drainTitle(each.name)}
      submit={t.redis.drain}
      busy={drain.isPending}
      disabled={to === ''}
      problem={drain.error}
      onClose={onClose}
      onSubmit={() =>
        drain.mutate(
          { method: 'POST', path: instancePath(each.name, '/drain'), body: { to } },
          {
            onSuccess: () => {
              toast(t.redis.draining(each.name, to));
              onClose();
            },
          },
        )
      }
    >
      <p>{t.redis.drainExplain(count(each.types))}</p>
      <SelectField
        label={t.redis.target}
        value={to}
        onChange={setTo}
        options={[
          ['', t.redis.choose] as const,
          ...others.map((other) => [other.name, instanceLabel(other, t.common.down)] as const),
        ]}
      />
      {others.length === 0 && <p className="hint">{t.redis.drainNeedsOther}</p>}
    </FormDialog>
  );
}

export function instanceLabel(each: Instance, down: string): string {
  return each.check?.reachable === false ? `${each.name} (${down})` : each.name;
}

function RemoveDialog({ each, onClose }: { each: Instance; onClose(): void }) {
  const t = useT();
  return (
    <ConfirmAction
      title={t.redis.removeTitle(each.name)}
      submit={t.redis.remove}
      danger
      type={each.name}
      action={{ method: 'DELETE', path: instancePath(each.name) }}
      stale={STALE}
      done={() => t.redis.removed(each.name)}
      onClose={onClose}
    >
      <p>{t.redis.removeExplain}</p>
    </ConfirmAction>
  );
}
