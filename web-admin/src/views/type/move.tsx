/** To another Redis instance: first what it would do, then do it; and back. */
import { Progress, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { get, type Problem, typePath } from '../../api/client';
import { keepType, useAction, useInstanceNames, useInstances } from '../../api/queries';
import type { Migrated, Place, Plan, TypeDetail, TypeRecord } from '../../api/types';
import { useT } from '../../i18n';
import { count, duration } from '../../lib/format';
import { Badge, Button, Loading, Notice, ProblemBox } from '../../ui/basics';
import { ConfirmAction } from '../../ui/confirm-action';
import { Dialog, FormDialog } from '../../ui/dialog';
import { CheckField, SelectField, TextField } from '../../ui/fields';
import { instanceLabel } from '../redis';
import { staleType } from './small-actions';

interface Props {
  type: TypeDetail;
  onClose(): void;
}

export function MoveDialog({ type, onClose }: Props) {
  const t = useT();
  const { data: instances, error: listError } = useInstances();
  const others = (instances?.items ?? []).filter((each) => each.id !== type.instance);
  const [chosen, setChosen] = useState('');
  const [abandon, setAbandon] = useState(false);
  const [typed, setTyped] = useState('');
  // Of several, the operator chooses.
  const to = chosen || (others.length === 1 ? (others[0]?.name ?? '') : '');
  const plan = useQuery<Plan, Problem>({
    queryKey: ['type', type.name, 'plan', to],
    queryFn: ({ signal }) => get(typePath(type.name, '/migration'), { to, ids: 'string' }, signal),
    enabled: to !== '',
    retry: false,
    // A plan is about this moment.
    staleTime: 0,
    gcTime: 0,
  });
  const move = useAction<Migrated>([...staleType(type.name), ['instances']]);
  if (move.data) {
    const { kept, burnt, took_ms } = move.data;
    return (
      <Dialog title={t.move.title(type.name)} onClose={onClose}>
        <div className="stack">
          <p role="status">
            <Badge tone="ok">{t.move.done(to, duration(took_ms / 1000, t.units))}</Badge>
          </p>
          <p>{t.move.outcome(count(kept), count(burnt))}</p>
          <p className="hint">{t.move.undoHint}</p>
          <div className="row end">
            <Button kind="primary" onClick={onClose}>
              {t.common.close}
            </Button>
          </div>
        </div>
      </Dialog>
    );
  }
  const problems = plan.data?.problems ?? [];
  const ready = plan.data !== undefined && !plan.isFetching && (problems.length === 0 || abandon);
  return (
    <FormDialog
      title={t.move.title(type.name)}
      submit={move.isPending ? t.move.running : t.move.submit}
      busy={move.isPending}
      disabled={!ready || (abandon && typed !== type.name)}
      danger={abandon}
      problem={move.error}
      wide
      onClose={onClose}
      onSubmit={() => {
        // What is told of the type meanwhile must not choose another target.
        setChosen(to);
        move.mutate(
          {
            method: 'POST',
            path: typePath(type.name, '/migration'),
            query: { ids: 'string' },
            body: abandon ? { to, abandon } : { to },
          },
          { onSuccess: (moved) => keepType(moved.record), onError: () => void plan.refetch() },
        );
      }}
    >
      <p>{t.move.explain}</p>
      {listError && <ProblemBox error={listError} />}
      {instances && others.length === 0 && <Notice tone="warn">{t.move.noOther}</Notice>}
      {others.length > 0 && (
        <SelectField
          label={t.redis.target}
          value={to}
          onChange={setChosen}
          disabled={move.isPending}
          options={[
            ['', t.redis.choose] as const,
            ...others.map((each) => [each.name, instanceLabel(each, t.common.down)] as const),
          ]}
        />
      )}
      {plan.isFetching && <Loading />}
      {plan.error && <ProblemBox error={plan.error} retry={() => void plan.refetch()} />}
      {plan.data && !plan.isFetching && <PlanView plan={plan.data} abandon={abandon} />}
      {plan.data && (
        <CheckField
          label={t.move.abandon}
          hint={t.move.abandonHint}
          checked={abandon}
          disabled={move.isPending}
          onChange={setAbandon}
        />
      )}
      {abandon && (
        <TextField label={t.common.typeName(type.name)} value={typed} onChange={setTyped} mono />
      )}
      {move.isPending && <Progress value={100} animated aria-label={t.move.running} />}
    </FormDialog>
  );
}

function PlanView({ plan, abandon }: { plan: Plan; abandon: boolean }) {
  const t = useT();
  const kept = plan.keeps_rest && !abandon;
  return (
    <div className="stack" role="status">
      <h3>{t.move.dryRun}</h3>
      {plan.problems.map((problem) => (
        <Notice key={problem} tone="bad">
          {problem}
        </Notice>
      ))}
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Td />
            <Table.Th scope="col">{t.common.name}</Table.Th>
            <Table.Th scope="col">{t.common.state}</Table.Th>
            <Table.Th scope="col" className="num">
              {t.move.holds}
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          <PlaceRow label={t.move.from} place={plan.from} />
          <PlaceRow label={t.move.to} place={plan.to} />
        </Table.Tbody>
      </Table>
      <p>
        {plan.rest === 0 ? (
          t.move.nothingLeft
        ) : (
          <>
            <Badge tone={kept ? 'ok' : 'warn'}>{kept ? t.move.kept : t.move.burnt}</Badge>{' '}
            {kept ? t.move.keeps(count(plan.rest)) : t.move.burns(count(plan.rest))}
          </>
        )}
      </p>
    </div>
  );
}

function PlaceRow({ label, place }: { label: string; place: Place }) {
  const t = useT();
  return (
    <Table.Tr>
      <Table.Td>{label}</Table.Td>
      <Table.Th scope="row">{place.name}</Table.Th>
      <Table.Td>
        <Badge tone={place.reachable ? 'ok' : 'bad'}>
          {place.reachable ? t.common.answers : t.common.down}
        </Badge>
      </Table.Td>
      <Table.Td className="num">{place.dispatcher ? count(place.dispatcher.left) : '—'}</Table.Td>
    </Table.Tr>
  );
}

export function UndoDialog({ type, onClose }: Props) {
  const t = useT();
  const instanceName = useInstanceNames();
  const running = type.moving_to !== null;
  return (
    <ConfirmAction<TypeRecord>
      title={t.move.undoTitle(type.name)}
      submit={t.type.undo}
      action={{
        method: 'DELETE',
        path: typePath(type.name, '/migration'),
        query: { ids: 'string' },
      }}
      stale={[...staleType(type.name), ['instances']]}
      done={(record) => {
        keepType(record);
        return t.move.undone(type.name, instanceName(record.instance));
      }}
      onClose={onClose}
    >
      <p>
        {running
          ? t.move.undoRunning(instanceName(type.instance))
          : t.move.undoBack(instanceName(type.moved_from))}
      </p>
    </ConfirmAction>
  );
}
