/** What changed, field by field. */
import { useT } from '../i18n';
import { differences } from '../lib/diff';

const SHOWN = 400;

/** Long texts of operators, to be told apart, not to be read. */
export const cut = (text: string): string =>
  text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;

export function Diff({ before, after }: { before: unknown; after: unknown }) {
  const t = useT();
  const rows = differences(before, after);
  if (rows.length === 0) return <p className="mute">{t.audit.same}</p>;
  return (
    <table className="diff">
      <thead>
        <tr>
          <th scope="col">{t.audit.field}</th>
          <th scope="col">{t.audit.before}</th>
          <th scope="col">{t.audit.after}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.path}>
            <th scope="row">{row.path || '—'}</th>
            <td className={row.before === null ? 'mute' : 'was'}>
              {row.before === null ? '—' : cut(row.before) || t.change.empty}
            </td>
            <td className={row.after === null ? 'mute' : 'is'}>
              {row.after === null ? '—' : cut(row.after) || t.change.empty}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
