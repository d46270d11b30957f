/** Rows of the audit log; what changed opens below a row. */
import { Table } from '@mantine/core';
import { Fragment, useState } from 'react';
import { Link } from 'wouter';
import type { AuditEntry } from '../api/types';
import { useT } from '../i18n';
import { differences } from '../lib/diff';
import { TextButton, Time } from './basics';
import { Diff } from './diff';

export function AuditTable({ items, subject }: { items: AuditEntry[]; subject: boolean }) {
  const t = useT();
  const [open, setOpen] = useState<number | null>(null);
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">{t.common.time}</Table.Th>
          <Table.Th scope="col">{t.audit.actor}</Table.Th>
          <Table.Th scope="col">{t.audit.action}</Table.Th>
          {subject && <Table.Th scope="col">{t.audit.subject}</Table.Th>}
          <Table.Th scope="col">{t.audit.what}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {items.map((entry) => {
          const rows = differences(entry.before, entry.after);
          const shown = open === entry.seq;
          return (
            <Fragment key={entry.seq}>
              <Table.Tr>
                <Table.Td className="nowrap">
                  <Time ms={entry.at_ms} full />
                </Table.Td>
                <Table.Td className="any">{entry.actor}</Table.Td>
                <Table.Td>
                  {t.audit.actions[entry.action as keyof typeof t.audit.actions] ?? entry.action}
                </Table.Td>
                {subject && (
                  <Table.Td className="any">
                    {isType(entry) ? (
                      <Link href={`/types/${encodeURIComponent(entry.subject)}`}>
                        {entry.subject}
                      </Link>
                    ) : (
                      entry.subject
                    )}
                  </Table.Td>
                )}
                <Table.Td className="any">
                  {rows.length === 0 ? (
                    <span className="mute">—</span>
                  ) : (
                    <TextButton
                      aria-expanded={shown}
                      onClick={() => setOpen(shown ? null : entry.seq)}
                    >
                      {entry.before === null
                        ? t.audit.settings(rows.length)
                        : summary(rows.map((row) => row.path))}
                    </TextButton>
                  )}
                </Table.Td>
              </Table.Tr>
              {shown && (
                <Table.Tr>
                  <Table.Td colSpan={subject ? 5 : 4}>
                    <Diff before={entry.before} after={entry.after} />
                  </Table.Td>
                </Table.Tr>
              )}
            </Fragment>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}

const isType = (entry: AuditEntry): boolean =>
  /_type$|^rotate_key$|migration$|^reserve/.test(entry.action);

function summary(paths: string[]): string {
  const shown = paths
    .slice(0, 3)
    .map((path) => path || '…')
    .join(', ');
  return paths.length > 3 ? `${shown} +${paths.length - 3}` : shown;
}
