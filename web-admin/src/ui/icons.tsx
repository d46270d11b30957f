/** The icons, drawn on 24 × 24 in the manner of the rest: one stroke, round ends. Decoration only. */
const paths = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  types: 'M4 6h16M4 12h16M4 18h16M8 4v16',
  redis: 'M4 6c0-3 16-3 16 0s-16 3-16 0v12c0 3 16 3 16 0V6M4 12c0 3 16 3 16 0',
  audit: 'M6 3h9l4 4v14H6zM10 11h5M10 15h5',
  access: 'M8 15a4 4 0 1 1 3.5-6L21 9v4h-3v3h-3v-3h-3.5A4 4 0 0 1 8 15z',
  import: 'M12 3v11M8 10l4 4 4-4M4 17v4h16v-4',
  search: 'M10.5 17a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13zM15.5 15.5L21 21',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  alert: 'M12 4L2.5 20h19zM12 10v4M12 17v.2',
  down: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM9 9l6 6M15 9l-6 6',
  info: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM12 11v5M12 8v.2',
  ok: 'M5 12.5l4.5 4.5L19 7.5',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  plus: 'M12 5v14M5 12h14',
  retry: 'M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5',
  move: 'M4 12h14M13 7l5 5-5 5',
  user: 'M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM4 21c0-4 3-6 8-6s8 2 8 6',
  arrow: 'M9 6l6 6-6 6',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
