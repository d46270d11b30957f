/** Retire and restore, a new key, a block for a bulk load. */
import { Code } from '@mantine/core';
import { useState } from 'react';
import { typePath } from '../../api/client';
import { keepType, useAction } from '../../api/queries';
import type { TypeDetail, TypeRecord } from '../../api/types';
import { useT } from '../../i18n';
import { count } from '../../lib/format';
import { big, leftOf, parseId } from '../../lib/ids';
import { Button, CopyButton } from '../../ui/basics';
import { ConfirmAction } from '../../ui/confirm-action';
import { Dialog, FormDialog } from '../../ui/dialog';
import { TextField } from '../../ui/fields';

interface Props {
  type: TypeDetail;
  onClose(): void;
}

export const staleType = (name: string) =>
  [['type', name], ['overview'], ['audit']] as readonly (readonly string[])[];

export function RetireDialog({ type, onClose }: Props) {
  const t = useT();
  const retire = type.state === 'active';
  return (
    <ConfirmAction<TypeRecord>
      title={retire ? t.type.retireTitle(type.name) : t.type.restoreTitle(type.name)}
      submit={retire ? t.type.retire : t.type.restore}
      danger={retire}
      type={type.name}
      action={{
        method: 'POST',
        path: typePath(type.name, retire ? '/retire' : '/restore'),
        query: { ids: 'string' },
      }}
      stale={staleType(type.name)}
      done={(record) => {
        keepType(record);
        return retire ? t.type.retired(type.name) : t.type.restored(type.name);
      }}
      onClose={onClose}
    >
      <p>{retire ? t.type.retireExplain : t.type.restoreExplain}</p>
    </ConfirmAction>
  );
}

export function RotateDialog({ type, onClose }: Props) {
  const t = useT();
  return (
    <ConfirmAction<TypeRecord>
      title={t.type.rotateTitle(type.name)}
      submit={t.type.rotate}
      danger
      type={type.name}
      action={{
        method: 'POST',
        path: typePath(type.name, '/rotate-key'),
        query: { ids: 'string' },
      }}
      stale={staleType(type.name)}
      done={(record) => {
        keepType(record);
        return t.type.rotated(type.name);
      }}
      onClose={onClose}
    >
      <p>{t.type.rotateExplain}</p>
    </ConfirmAction>
  );
}

/** Ids `start`, `start + step` …, below `end`. */
interface Block {
  name: string;
  start: string;
  end: string;
  step?: string | number;
  count: number | string;
}

export function ReserveDialog({ type, onClose }: Props) {
  const t = useT();
  const [wanted, setWanted] = useState('1000');
  const reserve = useAction<Block>([...staleType(type.name), ['types']]);
  const number = parseId(wanted);
  const left = leftOf(type) ?? 0n;
  const error =
    number === null || number < 1n || number > 1_000_000_000_000n
      ? t.rules.within('1', '1000000000000')
      : number > left
        ? t.type.reserveTooMany(count(left))
        : undefined;
  const block = reserve.data;
  if (block) {
    const step = big(block.step ?? 1);
    const last = String(big(block.start) + (big(block.count) - 1n) * step);
    return (
      <Dialog title={t.type.reserveTitle(type.name)} onClose={onClose}>
        <div className="stack">
          <p role="status">{t.type.reserved(count(big(block.count)))}</p>
          <Code block>
            {block.start} … {last}
          </Code>
          {step !== 1n && <p>{t.type.reservedStep(String(step))}</p>}
          <div className="row end">
            <CopyButton text={`${block.start} ${last}`} label={t.common.copy} />
            <Button kind="primary" onClick={onClose}>
              {t.common.close}
            </Button>
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={t.type.reserveTitle(type.name)}
      submit={t.type.reserve}
      busy={reserve.isPending}
      disabled={error !== undefined}
      problem={reserve.error}
      onClose={onClose}
      onSubmit={() =>
        reserve.mutate({
          method: 'POST',
          path: typePath(type.name, '/reserve'),
          query: { ids: 'string' },
          // At most 10^12, so exact.
          body: { count: Number(wanted) },
        })
      }
    >
      <p>{t.type.reserveExplain}</p>
      <TextField
        label={t.type.reserveCount}
        value={wanted}
        onChange={setWanted}
        error={error}
        numeric
        autoFocus
      />
    </FormDialog>
  );
}
