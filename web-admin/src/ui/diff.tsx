/** What changed, field by field. */
import { Table } from '@mantine/core';
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
    <Table className="diff">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">{t.audit.field}</Table.Th>
          <Table.Th scope="col">{t.audit.before}</Table.Th>
          <Table.Th scope="col">{t.audit.after}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={row.path}>
            <Table.Th scope="row">{row.path || '—'}</Table.Th>
            <Table.Td className={row.before === null ? 'mute' : 'was'}>
              {row.before === null ? '—' : cut(row.before) || t.change.empty}
            </Table.Td>
            <Table.Td className={row.after === null ? 'mute' : 'is'}>
              {row.after === null ? '—' : cut(row.after) || t.change.empty}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
