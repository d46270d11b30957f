/** Types from elsewhere, and all types as a file. */
import { Table } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { address } from '../api/client';
import { useAction, useOverview } from '../api/queries';
import { useCan } from '../api/session';
import { type ImportItem, type ImportResult, MODES } from '../api/types';
import { useT } from '../i18n';
import { count } from '../lib/format';
import { ActionProblem, Badge, Button, Card, LinkButton, LongText, Title } from '../ui/basics';
import { Confirm } from '../ui/dialog';
import { AreaField, CheckField, Choice, FileField, SelectField, TextField } from '../ui/fields';

const FORMATS = ['auto', 'leaf', 'tinyid', 'original', 'cosid', 'csv', 'idgen'] as const;
/** What the node takes, with room for the rest of the body. */
const MOST_BYTES = 8 * 1024 * 1024 - 4096;

export default function ImportView() {
  const t = useT();
  return (
    <>
      <Title text={t.nav.import}>{t.nav.import}</Title>
      <div className="column">
        <Import />
        <Card title={t.import.export}>
          <div className="stack">
            <p>{t.import.exportHint}</p>
            <div className="row">
              <LinkButton href={address('/export', { format: 'json' })} icon="import" download>
                {t.import.exportJson}
              </LinkButton>
              <LinkButton href={address('/export', { format: 'csv' })} icon="import" download>
                {t.import.exportCsv}
              </LinkButton>
            </div>
          </div>
        </Card>
      </div>
    </>
  );
}

function Import() {
  const t = useT();
  const operate = useCan('operate');
  const { data: overview } = useOverview();
  const [from, setFrom] = useState<'text' | 'url'>('text');
  const [text, setText] = useState('');
  const [url, setUrl] = useState('');
  const [table, setTable] = useState('');
  const [seen, setSeen] = useState(false);
  const [format, setFormat] = useState<(typeof FORMATS)[number]>('auto');
  const [gap, setGap] = useState('');
  const [mode, setMode] = useState('');
  const [instance, setInstance] = useState('');
  const [tooLarge, setTooLarge] = useState(false);
  const [skipped, setSkipped] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState(false);
  const dry = useAction<ImportResult>([]);
  const run = useAction<ImportResult>([['types'], ['overview'], ['audit']]);
  const percent = /^(\d{1,6})\s*%$/.exec(gap.trim());
  const gapWrong = gap.trim() !== '' && !percent && !/^\d{1,15}$/.test(gap.trim());
  const source =
    from === 'text' ? { text } : { url, ...(table.trim() ? { table: table.trim() } : {}) };
  const body = {
    source,
    format,
    ...(gap.trim() === '' || gapWrong
      ? {}
      : { gap: percent ? { percent: Number(percent[1]) } : Number(gap.trim()) }),
    ...(mode ? { mode } : {}),
    ...(instance ? { instance } : {}),
  };
  // A dry run is about what was asked then, not about what stands in the form now.
  const asked = JSON.stringify(body);
  const [dryOf, setDryOf] = useState('');
  const result = run.data ?? (dryOf === asked ? dry.data : undefined);
  const fresh = !run.data && result !== undefined;
  const chosen =
    result?.items.filter((item) => item.state === 'new' && !skipped.has(item.name)) ?? [];
  const changed = <T,>(set: (value: T) => void) => {
    return (value: T) => {
      set(value);
      run.reset();
    };
  };
  const load = async (file: File | null) => {
    if (!file) return;
    setTooLarge(file.size > MOST_BYTES);
    if (file.size <= MOST_BYTES) changed(setText)(await file.text());
  };
  const problem = run.error ?? dry.error;
  const at = (field: string) => (problem?.field === field ? problem.detail : undefined);
  return (
    <Card title={t.import.title}>
      <div className="stack">
        <p>{t.import.explain}</p>
        <Choice
          label={t.import.from}
          value={from}
          onChange={changed(setFrom)}
          options={[
            ['text', t.import.fromText],
            ['url', t.import.fromUrl],
          ]}
        />
        {from === 'text' ? (
          <>
            <AreaField
              label={t.import.text}
              hint={t.import.textHint}
              value={text}
              onChange={changed(setText)}
              error={tooLarge ? t.import.tooLarge : at('source.text')}
              rows={7}
              mono
            />
            <FileField
              label={t.import.file}
              accept=".json,.csv,.sql,.txt,.tsv"
              onChange={(file) => void load(file)}
            />
          </>
        ) : (
          <div className="fields">
            <div className="full stack">
              <TextField
                label={t.import.url}
                type={seen ? 'text' : 'password'}
                hint={t.import.urlHint}
                value={url}
                onChange={changed(setUrl)}
                error={at('source.url')}
                autoComplete="new-password"
                mono
              />
              <CheckField label={t.common.showSecret} checked={seen} onChange={setSeen} />
            </div>
            <TextField
              label={t.import.table}
              hint={t.import.tableHint}
              value={table}
              onChange={changed(setTable)}
              error={at('source.table')}
              mono
            />
          </div>
        )}
        <div className="fields">
          <SelectField
            label={t.import.format}
            value={format}
            onChange={changed(setFormat)}
            error={at('format')}
            options={FORMATS.map((each) => [each, t.import.formats[each]] as const)}
          />
          <TextField
            label={t.import.gap}
            hint={t.import.gapHint}
            value={gap}
            onChange={changed(setGap)}
            error={gapWrong ? t.import.gapWrong : at('gap')}
          />
          <SelectField
            label={t.common.mode}
            value={mode}
            onChange={changed(setMode)}
            error={at('mode')}
            options={[
              ['', t.import.usual],
              ...MODES.filter((each) => each === 'strict' || each === 'segment').map(
                (each) => [each as string, t.modes[each].name] as const,
              ),
            ]}
          />
          <SelectField
            label={t.common.instance}
            value={instance}
            onChange={changed(setInstance)}
            error={at('instance')}
            options={[
              ['', t.form.anyInstance],
              ...(overview?.instances ?? []).map((each) => [each.name, each.name] as const),
            ]}
          />
        </div>
        <ActionProblem problem={problem} />
        <div className="row">
          <Button
            kind={fresh ? 'plain' : 'primary'}
            busy={dry.isPending}
            disabled={!operate || gapWrong || (from === 'text' ? text.trim() === '' : url === '')}
            title={operate ? undefined : t.common.needs(t.roles.operate)}
            onClick={() => {
              run.reset();
              setSkipped(new Set());
              dry.mutate(
                { method: 'POST', path: '/imports', query: { dry_run: true, ids: 'string' }, body },
                { onSuccess: () => setDryOf(asked) },
              );
            }}
          >
            {t.import.dry}
          </Button>
          {fresh && (
            <Button kind="primary" disabled={chosen.length === 0} onClick={() => setAsking(true)}>
              {t.import.apply(chosen.length)}
            </Button>
          )}
        </div>
        {result && (
          <Result
            result={result}
            dry={fresh}
            skipped={skipped}
            toggle={(name) => {
              const next = new Set(skipped);
              if (!next.delete(name)) next.add(name);
              setSkipped(next);
            }}
          />
        )}
      </div>
      {asking && (
        <Confirm
          title={t.import.applyTitle}
          submit={t.import.apply(chosen.length)}
          busy={run.isPending}
          problem={run.error}
          onClose={() => setAsking(false)}
          onSubmit={() =>
            run.mutate(
              {
                method: 'POST',
                path: '/imports',
                query: { dry_run: false, ids: 'string' },
                body: { ...body, only: chosen.map((item) => item.name) },
              },
              { onSettled: () => setAsking(false) },
            )
          }
        >
          <p>{t.import.applyExplain}</p>
        </Confirm>
      )}
    </Card>
  );
}

const tone = { new: 'info', exists: 'mute', created: 'ok', failed: 'bad' } as const;

function Result({
  result,
  dry,
  skipped,
  toggle,
}: {
  result: ImportResult;
  dry: boolean;
  skipped: ReadonlySet<string>;
  toggle(name: string): void;
}) {
  const t = useT();
  return (
    <>
      <p role="status">
        <b>{dry ? t.import.dryDone : t.import.done}</b>{' '}
        {t.import.summary(count(result.create), count(result.skip), count(result.fail))}{' '}
        {result.left ? <b>{t.import.left(count(result.left))} </b> : null}
        <span className="mute">
          {t.import.format}: {result.format}
        </span>
      </p>
      <div className="scroll tall" tabIndex={0} role="group" aria-label={t.import.title}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t.common.name}</Table.Th>
              <Table.Th scope="col">{t.common.state}</Table.Th>
              <Table.Th scope="col" className="num">
                {t.import.highest}
              </Table.Th>
              <Table.Th scope="col" className="num">
                {t.import.step}
              </Table.Th>
              <Table.Th scope="col" className="num">
                {t.form.first_id}
              </Table.Th>
              <Table.Th scope="col" className="num">
                {t.form.min_range}
              </Table.Th>
              <Table.Th scope="col">{t.import.note}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {result.items.map((item) => (
              <ImportRow
                key={item.name}
                item={item}
                dry={dry}
                on={!skipped.has(item.name)}
                toggle={toggle}
              />
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </>
  );
}

function ImportRow({
  item,
  dry,
  on,
  toggle,
}: {
  item: ImportItem;
  dry: boolean;
  on: boolean;
  toggle(name: string): void;
}) {
  const t = useT();
  return (
    <Table.Tr>
      <Table.Th scope="row">
        {dry && item.state === 'new' ? (
          <CheckField label={item.name} checked={on} onChange={() => toggle(item.name)} />
        ) : item.state === 'failed' ? (
          <span className="cut">{item.name}</span>
        ) : (
          <Link href={`/types/${encodeURIComponent(item.name)}`} className="cut">
            {item.name}
          </Link>
        )}
      </Table.Th>
      <Table.Td>
        <Badge tone={tone[item.state]}>{t.import.states[item.state]}</Badge>
      </Table.Td>
      <Table.Td className="num mono">{String(item.source.highest)}</Table.Td>
      <Table.Td className="num mono">{item.source.step ?? '—'}</Table.Td>
      <Table.Td className="num mono">{item.first_id || '—'}</Table.Td>
      <Table.Td className="num">{item.min_range === null ? '—' : count(item.min_range)}</Table.Td>
      <Table.Td className="any">
        {item.problem && <span className="why">{item.problem}</span>}
        {item.existing_next_id && (
          <span className="small">{t.import.existing(item.existing_next_id)} </span>
        )}
        {item.source.note && <span className="small">{item.source.note} </span>}
        {item.description && <LongText text={item.description} />}
      </Table.Td>
    </Table.Tr>
  );
}
