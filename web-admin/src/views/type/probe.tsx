/** Taking ids by hand, and asking what an id tells. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call, type Problem, typePath } from '../../api/client';
import { useAction } from '../../api/queries';
import { useCan } from '../../api/session';
import type { Decoded, TypeDetail } from '../../api/types';
import { useT } from '../../i18n';
import { dateTime } from '../../lib/format';
import { ActionProblem, Badge, Button, Card, CopyButton, ProblemBox } from '../../ui/basics';
import { CheckField, TextField } from '../../ui/fields';

/** More are not for looking at. */
const MOST = 1_000;

export function Issue({ type }: { type: TypeDetail }) {
  const t = useT();
  const operate = useCan('operate');
  const textOnly = type.options.calendar !== undefined;
  const [number, setNumber] = useState('5');
  const [pass, setPass] = useState('');
  const [asText, setAsText] = useState(false);
  const take = useAction<{ ids?: string[]; texts?: string[] }>([['type', type.name]]);
  const sharded = type.mode === 'sharded';
  const wrong = !/^\d{1,4}$/.test(number) || Number(number) < 1 || Number(number) > MOST;
  const ids = (take.data?.texts ?? take.data?.ids ?? []).map(String);
  return (
    <Card title={t.type.issue}>
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (wrong || take.isPending || (sharded && pass === '')) return;
          take.mutate({
            method: 'POST',
            path: typePath(type.name, '/ids'),
            query: {
              count: Number(number),
              gate_pass: sharded ? pass : undefined,
              as: asText || textOnly ? 'text' : undefined,
              ids: 'string',
            },
          });
        }}
      >
        <p className="hint">{t.type.issueWarning}</p>
        <div className="fields">
          <TextField
            label={t.type.howMany}
            value={number}
            onChange={setNumber}
            error={wrong ? t.rules.within('1', String(MOST)) : undefined}
            numeric
          />
          {sharded && (
            <TextField label={t.type.gatePass} value={pass} onChange={setPass} required />
          )}
        </div>
        {!textOnly && <CheckField label={t.type.asText} checked={asText} onChange={setAsText} />}
        <div className="row">
          <Button
            type="submit"
            busy={take.isPending}
            disabled={!operate || wrong || type.state === 'retired' || (sharded && pass === '')}
            title={operate ? undefined : t.common.needs(t.roles.operate)}
          >
            {t.type.take}
          </Button>
          {ids.length > 0 && <CopyButton text={ids.join('\n')} label={t.common.copy} />}
        </div>
        <ActionProblem problem={take.error} />
        {ids.length > 0 && (
          <div className="ids" role="status" data-testid="issued">
            {ids.map((id) => (
              <div key={id}>{id}</div>
            ))}
          </div>
        )}
      </form>
    </Card>
  );
}

export function Decode({ type }: { type: TypeDetail }) {
  const t = useT();
  const [text, setText] = useState('');
  const [asked, setAsked] = useState('');
  const { data, error, isLoading, refetch } = useQuery<Decoded, Problem>({
    queryKey: ['type', type.name, 'decode', asked],
    queryFn: ({ signal }) =>
      call('GET', typePath(type.name, '/decode'), { query: { id: asked, ids: 'string' }, signal }),
    enabled: asked !== '',
    retry: false,
  });
  const rows: [string, string | number | undefined][] = data
    ? [
        [t.decode.id, data.id],
        [t.decode.text, data.text],
        [t.decode.position, data.position],
        [t.decode.at, data.at_ms === undefined ? undefined : dateTime(data.at_ms)],
        [t.decode.node, data.node],
        [
          t.decode.range,
          data.range_first && t.decode.rangeOf(data.range_first, data.range_count ?? 0),
        ],
        [t.decode.period, data.period],
        [t.decode.shard, data.shard],
        [t.option.app_id, data.app_id],
        [t.decode.worker, data.worker],
        [t.decode.sequence, data.sequence],
      ]
    : [];
  return (
    <Card title={t.decode.title}>
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === asked) refetch();
          else setAsked(text.trim());
        }}
      >
        <TextField
          label={t.decode.input}
          value={text}
          onChange={setText}
          error={error?.field === 'id' ? error.detail : undefined}
          mono
        />
        <div className="row">
          {/* Not while the type's news fetch it again: a click would be lost. */}
          <Button type="submit" busy={isLoading} disabled={text.trim() === ''}>
            {t.decode.submit}
          </Button>
        </div>
        {error && error.field !== 'id' && <ProblemBox error={error} />}
        {data && !error && (
          <div role="status">
            <p>
              <Badge tone={data.issued ? 'ok' : 'warn'}>
                {data.issued ? t.decode.issued : t.decode.notIssued}
              </Badge>
            </p>
            <dl className="facts">
              {rows
                .filter(([, value]) => value !== undefined && value !== '')
                .map(([label, value]) => (
                  <div key={label} className="contents">
                    <dt>{label}</dt>
                    <dd className="mono">{value}</dd>
                  </div>
                ))}
            </dl>
          </div>
        )}
      </form>
    </Card>
  );
}
