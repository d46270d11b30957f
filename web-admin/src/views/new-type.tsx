/** A new type: what it will do is shown while one types; nothing is made before the button. */
import { Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { call, type Problem } from '../api/client';
import { keepType, useAction } from '../api/queries';
import { useCan } from '../api/session';
import { MODES, type Mode, type Preview, type TypeRecord } from '../api/types';
import { useT } from '../i18n';
import { useDebounced } from '../lib/debounced';
import { type Draft, FRESH, newTypeOf } from '../lib/draft';
import { count, duration } from '../lib/format';
import { check, type Errors, NAME } from '../lib/rules';
import { ActionProblem, Button, Card, Notice, ProblemBox, Title } from '../ui/basics';
import { Choice, TextField } from '../ui/fields';
import { useToast } from '../ui/toast';
import { BasicFields, LimitFields, OptionFields } from '../ui/type-fields';

const RATES = ['1', '100', '10000'];

export default function NewTypeView() {
  const t = useT();
  const operate = useCan('operate');
  const [, go] = useLocation();
  const toast = useToast();
  const [draft, setDraft] = useState<Draft>(FRESH);
  const [tried, setTried] = useState(false);
  const [rate, setRate] = useState('100');
  const create = useAction<TypeRecord>([['overview'], ['audit']]);
  const own = check(draft, t);
  // What is previewed does not depend on the name.
  const previewable = Object.keys(own).every((field) => field === 'name');
  const preview = usePreview(draft, rate, previewable);
  const refused = create.error ?? preview.problem;
  // The node's word stands at the field that it names, unless a rule here says something already.
  const errors: Errors = { ...own };
  if (refused?.field && !(refused.field in errors)) errors[refused.field] = refused.detail;
  // An empty form is not scolded.
  const shown: Errors = { ...errors };
  if (!tried)
    for (const field of ['name', 'app_id'] as const) if (draft[field] === '') delete shown[field];
  const change = (part: Partial<Draft>) => {
    setDraft((now) => ({ ...now, ...part }));
    create.reset();
  };
  const submit = () => {
    setTried(true);
    if (Object.keys(own).length > 0) {
      focusFirst(own);
      return;
    }
    create.mutate(
      { method: 'POST', path: '/types', query: { ids: 'string' }, body: newTypeOf(draft) },
      {
        onSuccess: (type) => {
          keepType(type);
          toast(t.form.created(type.name));
          go(`/types/${encodeURIComponent(type.name)}`);
        },
        onError: (problem) => {
          if (problem.field) focusFirst({ [problem.field]: '' });
        },
      },
    );
  };
  const fields = { draft, change, errors: shown };
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Title
        text={t.types.new}
        actions={
          <>
            <Button onClick={() => go('/types')}>{t.common.cancel}</Button>
            <Button type="submit" kind="primary" busy={create.isPending} disabled={!operate}>
              {t.form.create}
            </Button>
          </>
        }
      >
        {t.types.new}
      </Title>
      {!operate && <Notice tone="warn">{t.common.needs(t.roles.operate)}</Notice>}
      {create.error && <ActionProblem problem={create.error} />}
      <div className="grid">
        <div className="column">
          <Card title={t.form.kind}>
            <div className="stack">
              <Choice<Mode>
                label={t.common.mode}
                value={draft.mode}
                onChange={(mode) => change({ mode })}
                options={MODES.map((mode) => [mode, t.modes[mode].name] as const)}
              />
              <p>{t.modes[draft.mode].explain}</p>
              <BasicFields {...fields} />
            </div>
          </Card>
          <Card title={t.form.options}>
            <OptionFields {...fields} />
          </Card>
          <Card title={t.form.sizes}>
            <div className="stack">
              <p className="hint">{t.form.sizesHint}</p>
              <LimitFields {...fields} />
            </div>
          </Card>
        </div>
        <PreviewCard
          preview={preview}
          invalid={!previewable}
          rate={rate}
          setRate={setRate}
          mode={draft.mode}
        />
      </div>
    </form>
  );
}

/** To the first input that something is wrong with. */
function focusFirst(errors: Errors): void {
  const inputs = document.querySelectorAll<HTMLElement>('main [name]');
  const first = [...inputs].find((input) => (input.getAttribute('name') ?? '') in errors);
  first?.focus();
}

interface PreviewState {
  data: Preview | undefined;
  problem: Problem | null;
  old: boolean;
}

function usePreview(draft: Draft, rate: string, valid: boolean): PreviewState {
  const name = NAME.test(draft.name) ? draft.name : 'preview';
  const body = JSON.stringify({ type: newTypeOf({ ...draft, name }), rate: Number(rate) || 0 });
  const settled = useDebounced(body, 350);
  const { data, error, isPlaceholderData } = useQuery<Preview, Problem>({
    queryKey: ['preview', settled],
    queryFn: ({ signal }) =>
      call('POST', '/types/preview', {
        query: { ids: 'string' },
        body: JSON.parse(settled) as unknown,
        signal,
      }),
    enabled: valid && settled === body,
    placeholderData: (before) => before,
    retry: false,
    staleTime: 60_000,
    gcTime: 60_000,
  });
  const fresh = valid && settled === body;
  return { data, problem: fresh ? error : null, old: !fresh || isPlaceholderData };
}

function PreviewCard({
  preview: { data, problem, old },
  invalid,
  rate,
  setRate,
  mode,
}: {
  preview: PreviewState;
  invalid: boolean;
  rate: string;
  setRate(rate: string): void;
  mode: Mode;
}) {
  const t = useT();
  const wrongRate = !/^\d{1,12}(\.\d+)?$/.test(rate);
  return (
    <Card title={t.preview.title} className={old || invalid ? 'sticky old' : 'sticky'}>
      <div className="stack" aria-live="polite">
        <TextField
          label={t.preview.rate}
          value={rate}
          onChange={setRate}
          numeric
          list="rates"
          error={wrongRate ? t.rules.whole : undefined}
        />
        <datalist id="rates">
          {RATES.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        {invalid && <p className="hint">{t.preview.invalid}</p>}
        {problem && !problem.field && <ProblemBox error={problem} />}
        {problem?.field && (
          <p className="hint">
            {problem.detail} <code>{problem.field}</code>
          </p>
        )}
        {data && !problem && !invalid && (
          <>
            <h3>{t.preview.first}</h3>
            <ol className="ids">
              {data.ids.map((each) => (
                <li key={each.text}>
                  {each.text}
                  {each.id !== null && String(each.id) !== each.text && (
                    <span className="mute"> = {each.id}</span>
                  )}
                </li>
              ))}
            </ol>
            <p className="hint">{data.ascending ? t.preview.ascending : t.preview.notAscending}</p>
            {data.note && <p>{data.note}</p>}
            {mode !== 'snowflake' && data.growth.length > 0 && (
              <>
                <h3>{t.preview.growth}</h3>
                <div className="scroll" tabIndex={0} role="group" aria-label={t.preview.growth}>
                  <Table>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th scope="col">{t.preview.after}</Table.Th>
                        <Table.Th scope="col" className="num">
                          {t.preview.length}
                        </Table.Th>
                        <Table.Th scope="col" className="num">
                          {t.preview.upTo}
                        </Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {data.growth.map((step) => (
                        <Table.Tr key={`${step.at_s} ${step.end}`}>
                          <Table.Td>{duration(step.at_s, t.units)}</Table.Td>
                          <Table.Td className="num">{count(step.length)}</Table.Td>
                          <Table.Td className="num mono">{String(step.end)}</Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                  </Table>
                </div>
                <p className="hint">{t.preview.growthHint}</p>
              </>
            )}
            {data.lasts_s !== null && <p>{t.preview.lasts(duration(data.lasts_s, t.units))}</p>}
          </>
        )}
      </div>
    </Card>
  );
}
