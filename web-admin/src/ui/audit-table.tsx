/** Rows of the audit log; what changed opens below a row. */
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
    <table>
      <thead>
        <tr>
          <th scope="col">{t.common.time}</th>
          <th scope="col">{t.audit.actor}</th>
          <th scope="col">{t.audit.action}</th>
          {subject && <th scope="col">{t.audit.subject}</th>}
          <th scope="col">{t.audit.what}</th>
        </tr>
      </thead>
      <tbody>
        {items.map((entry) => {
          const rows = differences(entry.before, entry.after);
          const shown = open === entry.seq;
          return (
            <Fragment key={entry.seq}>
              <tr>
                <td className="nowrap">
                  <Time ms={entry.at_ms} full />
                </td>
                <td className="any">{entry.actor}</td>
                <td>
                  {t.audit.actions[entry.action as keyof typeof t.audit.actions] ?? entry.action}
                </td>
                {subject && (
                  <td className="any">
                    {isType(entry) ? (
                      <Link href={`/types/${encodeURIComponent(entry.subject)}`}>
                        {entry.subject}
                      </Link>
                    ) : (
                      entry.subject
                    )}
                  </td>
                )}
                <td className="any">
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
                </td>
              </tr>
              {shown && (
                <tr>
                  <td colSpan={subject ? 5 : 4}>
                    <Diff before={entry.before} after={entry.after} />
                  </td>
                </tr>
              )}
            </Fragment>
          );
        })}
      </tbody>
    </table>
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
