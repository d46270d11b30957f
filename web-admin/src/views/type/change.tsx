/** Changes settings. Where somebody else was faster, both changes are shown and nothing is overwritten. */
import { Table } from '@mantine/core';
import { useState } from 'react';
import { asProblem, get, type Problem, typePath } from '../../api/client';
import { keepType, useAction } from '../../api/queries';
import type { Settings, TypeDetail, TypeRecord } from '../../api/types';
import { useT } from '../../i18n';
import { conflicts } from '../../lib/diff';
import { changes, type Draft, draftOf, settingsIn, settingsOf } from '../../lib/draft';
import { check, type Errors } from '../../lib/rules';
import { hasIssued } from '../../lib/type-list';
import { Button, Notice } from '../../ui/basics';
import { FormDialog } from '../../ui/dialog';
import { cut, Diff } from '../../ui/diff';
import { useToast } from '../../ui/toast';
import { BasicFields, LimitFields, OptionFields } from '../../ui/type-fields';
import { staleType } from './small-actions';

export function ChangeDialog({ type, onClose }: { type: TypeDetail; onClose(): void }) {
  const t = useT();
  const toast = useToast();
  // What the change starts from. The view behind may go on to newer versions.
  const [base, setBase] = useState<TypeRecord>(type);
  const [draft, setDraft] = useState<Draft>(() => draftOf(type));
  const [theirs, setTheirs] = useState<TypeRecord | null>(null);
  const [lookProblem, setLookProblem] = useState<Problem | null>(null);
  const save = useAction<TypeRecord>(staleType(type.name));
  const own = check(draft, t);
  const errors: Errors = { ...own };
  const refused = save.error;
  if (refused?.field && !(refused.field in errors)) errors[refused.field] = refused.detail;
  const valid = Object.keys(own).length === 0;
  const before = settingsIn(base);
  const after = valid ? settingsOf(draft) : before;
  const changed = changes(before, after);
  const any = Object.keys(changed).length > 0;

  const submit = () =>
    save.mutate(
      {
        method: 'PATCH',
        path: typePath(type.name),
        query: { ids: 'string' },
        body: { version: base.version, ...changed },
      },
      {
        onSuccess: (record) => {
          keepType(record);
          toast(t.common.saved);
          onClose();
        },
        onError: async (problem) => {
          if (problem.code !== 'CONFLICT') return;
          try {
            const found = await get<TypeDetail>(typePath(type.name), { ids: 'string' });
            // A conflict may have another reason, such as a migration that is under way.
            if (found.version !== base.version) setTheirs(found);
          } catch (error) {
            setLookProblem(asProblem(error));
          }
        },
      },
    );

  if (theirs) {
    return (
      <ConflictDialog
        base={base}
        theirs={theirs}
        mine={changed}
        onReload={() => {
          setBase(theirs);
          setDraft(draftOf(theirs));
          setTheirs(null);
          save.reset();
        }}
        onReapply={() => {
          setBase(theirs);
          setDraft(draftOf({ ...theirs, ...changed }));
          setTheirs(null);
          save.reset();
        }}
        onClose={onClose}
      />
    );
  }
  const newer = type.version > base.version;
  const fields = {
    draft,
    errors,
    existing: true,
    fixed: hasIssued(base),
    change: (part: Partial<Draft>) => {
      setDraft((now) => ({ ...now, ...part }));
      if (save.error) save.reset();
    },
  };
  return (
    <FormDialog
      title={t.change.title(type.name, base.version)}
      submit={t.common.save}
      busy={save.isPending}
      disabled={!valid || !any}
      problem={lookProblem ?? refused}
      wide
      onClose={onClose}
      onSubmit={submit}
    >
      {newer && <Notice tone="warn">{t.change.newer(type.version)}</Notice>}
      {fields.fixed && <p className="hint">{t.change.fixed}</p>}
      <BasicFields {...fields} />
      <h3>{t.form.sizes}</h3>
      <LimitFields {...fields} />
      <h3>{t.form.options}</h3>
      <OptionFields {...fields} />
      {any && (
        <>
          <h3>{t.change.what}</h3>
          <Diff before={pick(before, changed)} after={changed} />
        </>
      )}
    </FormDialog>
  );
}

function pick(settings: Settings, fields: Partial<Settings>): Partial<Settings> {
  const kept = Object.entries(settings).filter(([field]) => field in fields);
  return Object.fromEntries(kept) as Partial<Settings>;
}

function ConflictDialog({
  base,
  theirs,
  mine,
  onReload,
  onReapply,
  onClose,
}: {
  base: TypeRecord;
  theirs: TypeRecord;
  mine: Partial<Settings>;
  onReload(): void;
  onReapply(): void;
  onClose(): void;
}) {
  const t = useT();
  const before = settingsIn(base);
  const rows = conflicts(before, settingsIn(theirs), { ...before, ...mine });
  // What both changed first: there one has to decide.
  const sorted = [...rows].sort((a, b) => Number(b.clash) - Number(a.clash));
  const shown = (text: string | null) => (text === null ? '—' : cut(text) || t.change.empty);
  const state = base.state === theirs.state ? null : t.change.stateNow(t.states[theirs.state]);
  return (
    <FormDialog
      title={t.change.conflictTitle(base.name)}
      submit={t.change.reapply}
      busy={false}
      problem={null}
      wide
      onClose={onClose}
      onSubmit={onReapply}
    >
      <p role="alert">{t.change.conflict(base.version, theirs.version)}</p>
      {state && <Notice tone="warn">{state}</Notice>}
      <div className="scroll" tabIndex={0} role="group" aria-label={t.change.what}>
        <Table className="diff even">
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t.audit.field}</Table.Th>
              <Table.Th scope="col">{t.change.base(base.version)}</Table.Th>
              <Table.Th scope="col">{t.change.theirs(theirs.version)}</Table.Th>
              <Table.Th scope="col">{t.change.mine}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {sorted.map((row) => (
              <Table.Tr key={row.path} className={row.clash ? 'clash' : undefined}>
                <Table.Th scope="row">
                  {row.path} {row.clash && <span>⚠ {t.change.clash}</span>}
                </Table.Th>
                <Table.Td>{shown(row.base)}</Table.Td>
                <Table.Td className={row.theirs === row.base ? undefined : 'is'}>
                  {shown(row.theirs)}
                </Table.Td>
                <Table.Td className={row.mine === row.base ? undefined : 'is'}>
                  {shown(row.mine)}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {rows.length === 0 && <p>{t.change.noDifference}</p>}
      <p className="hint">{t.change.choose}</p>
      <div className="row">
        <Button onClick={onReload}>{t.change.reload}</Button>
      </div>
    </FormDialog>
  );
}
