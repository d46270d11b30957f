/** Who changed what, the newest first. */
import { useMemo, useState } from 'react';
import { useAudit } from '../api/queries';
import { useT } from '../i18n';
import { count } from '../lib/format';
import { AuditTable } from '../ui/audit-table';
import { Button, Card, Empty, Loading, ProblemBox, Title } from '../ui/basics';
import { SelectField, TextField } from '../ui/fields';

const STEP = 100;

export default function AuditView() {
  const t = useT();
  const { data, error, refetch } = useAudit(true);
  const [subject, setSubject] = useState('');
  const [actor, setActor] = useState('');
  const [action, setAction] = useState('');
  const [rows, setRows] = useState(STEP);
  const actions = useMemo(
    () => [...new Set(data?.items.map((each) => each.action))].sort(),
    [data],
  );
  const has = (text: string, wanted: string) =>
    text.toLowerCase().includes(wanted.trim().toLowerCase());
  const found = (data?.items ?? []).filter(
    (each) =>
      has(each.subject, subject) &&
      has(each.actor, actor) &&
      (action === '' || each.action === action),
  );
  return (
    <>
      <Title
        text={t.nav.audit}
        sub={data && t.audit.count(count(found.length), count(data.items.length), data.more)}
        actions={
          <Button icon="retry" onClick={() => void refetch()}>
            {t.common.refresh}
          </Button>
        }
      >
        {t.nav.audit}
      </Title>
      <search className="filters">
        <div className="grow">
          <TextField label={t.audit.subject} type="search" value={subject} onChange={setSubject} />
        </div>
        <div className="grow">
          <TextField label={t.audit.actor} type="search" value={actor} onChange={setActor} />
        </div>
        <SelectField
          label={t.audit.action}
          value={action}
          onChange={setAction}
          options={[
            ['', t.common.all],
            ...actions.map(
              (each) =>
                [each, t.audit.actions[each as keyof typeof t.audit.actions] ?? each] as const,
            ),
          ]}
          searchable
        />
      </search>
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data && (
        <Card title={t.nav.audit} flush>
          {found.length === 0 ? (
            <Empty>{t.audit.none}</Empty>
          ) : (
            <AuditTable items={found.slice(0, rows)} subject />
          )}
          {found.length > rows && (
            <p className="empty">
              <Button onClick={() => setRows(rows + STEP)}>{t.common.more}</Button>
            </p>
          )}
        </Card>
      )}
    </>
  );
}
