/** The small parts that every view is made of, on top of Mantine. */
import {
  ActionIcon,
  Alert,
  Anchor,
  Title as Heading,
  Loader,
  Badge as MantineBadge,
  Button as MantineButton,
  Paper,
  Text,
  Tooltip,
} from '@mantine/core';
import {
  type MouseEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { Link } from 'wouter';
import { asProblem, type Problem } from '../api/client';
import { useT } from '../i18n';
import { serverNow } from '../lib/clock';
import { dateTime, duration, iso, when } from '../lib/format';
import { Icon, type IconName } from './icons';

const kinds = {
  primary: { variant: 'filled' },
  danger: { variant: 'light', color: 'red' },
  plain: { variant: 'default' },
  quiet: { variant: 'subtle', color: 'gray' },
} as const;

interface ButtonProps {
  kind?: keyof typeof kinds;
  icon?: IconName;
  busy?: boolean | undefined;
  disabled?: boolean;
  /** Why it is disabled, or what it does: a tooltip. */
  title?: string | undefined;
  type?: 'button' | 'submit';
  className?: string;
  children?: ReactNode;
  onClick?: (() => void) | undefined;
  'aria-label'?: string | undefined;
  'aria-expanded'?: boolean;
  'aria-controls'?: string;
  'aria-pressed'?: boolean;
}

/**
 * A button. While `busy` it stays focused and does nothing; while disabled with a `title` it
 * can be focused too, so that everybody learns why.
 */
export function Button({
  kind = 'plain',
  icon,
  busy,
  disabled,
  title,
  type = 'button',
  className,
  children,
  onClick,
  ...aria
}: ButtonProps) {
  const off = busy || disabled;
  const explained = title !== undefined && disabled;
  const common = {
    ...kinds[kind],
    ...aria,
    type,
    className,
    disabled: disabled && !explained,
    'data-disabled': explained || undefined,
    'aria-busy': busy || undefined,
    'aria-disabled': off || undefined,
    onClick: (event: MouseEvent) => {
      if (off) event.preventDefault();
      else onClick?.();
    },
  };
  const section = busy ? <Loader size={14} color="currentColor" /> : icon && <Icon name={icon} />;
  const button = children ? (
    <MantineButton {...common} size="xs" leftSection={section}>
      {children}
    </MantineButton>
  ) : (
    <ActionIcon {...common} size={30}>
      {section}
    </ActionIcon>
  );
  return title === undefined ? button : <Tooltip label={title}>{button}</Tooltip>;
}

/** A link that looks like a button: to another view, or, with `download`, to a file. */
export function LinkButton({
  href,
  kind = 'plain',
  icon,
  download,
  children,
}: {
  href: string;
  kind?: keyof typeof kinds;
  icon?: IconName;
  download?: boolean;
  children: ReactNode;
}) {
  const common = { ...kinds[kind], size: 'xs', leftSection: icon && <Icon name={icon} /> };
  return download ? (
    <MantineButton {...common} component="a" href={href} download>
      {children}
    </MantineButton>
  ) : (
    <MantineButton {...common} component={Link} href={href}>
      {children}
    </MantineButton>
  );
}

/** What looks like a link, but stays where one is. */
export function TextButton({
  onClick,
  children,
  ...aria
}: {
  onClick(): void;
  children: ReactNode;
  'aria-expanded'?: boolean;
}) {
  return (
    <Anchor component="button" type="button" inherit {...aria} onClick={onClick}>
      {children}
    </Anchor>
  );
}

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'mute';

const toneColor = { ok: 'green', warn: 'yellow', bad: 'red', info: 'blue', mute: 'gray' } as const;
const toneIcon: Partial<Record<Tone, IconName>> = { ok: 'ok', warn: 'alert', bad: 'down' };

/** A state in a word. Never by colour alone: it has an icon (unless `plain`) and a text. */
export function Badge({
  tone,
  children,
  title,
  plain,
}: {
  tone: Tone;
  children: ReactNode;
  title?: string;
  plain?: boolean;
}) {
  const icon = plain ? undefined : toneIcon[tone];
  return (
    <MantineBadge
      component="span"
      variant="light"
      color={toneColor[tone]}
      tt="none"
      title={title}
      leftSection={icon && <Icon name={icon} size={12} />}
    >
      {children}
    </MantineBadge>
  );
}

/** A few sentences that should not be missed. `alert` interrupts, `status` is read when it is time. */
export function Notice({
  tone = 'info',
  role = 'note',
  actions,
  children,
}: {
  tone?: 'info' | 'warn' | 'bad' | 'ok';
  role?: 'note' | 'status' | 'alert';
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <Alert
      className="notice"
      variant="light"
      color={toneColor[tone]}
      role={role}
      icon={<Icon name={tone === 'info' ? 'info' : tone === 'ok' ? 'ok' : 'alert'} size={18} />}
    >
      <div className="row">
        <div className="grow">{children}</div>
        {actions}
      </div>
    </Alert>
  );
}

export function Card({
  title,
  actions,
  children,
  className,
  flush,
}: {
  title: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
  flush?: boolean;
}) {
  const id = useId();
  return (
    <Paper
      component="section"
      withBorder
      radius="md"
      className={`card ${className ?? ''}`}
      aria-labelledby={id}
    >
      <header>
        <Heading order={2} id={id}>
          {title}
        </Heading>
        {actions && <div className="row">{actions}</div>}
      </header>
      {flush ? <Flush label={id}>{children}</Flush> : <div className="body">{children}</div>}
    </Paper>
  );
}

/** What may be wider than there is room for: reachable by keyboard only while it is. */
function Flush({ label, children }: { label: string; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const look = new ResizeObserver(() => setWide(element.scrollWidth > element.clientWidth));
    look.observe(element);
    for (const child of element.children) look.observe(child);
    return () => look.disconnect();
  });
  const scrolls = wide ? { tabIndex: 0, role: 'group', 'aria-labelledby': label } : {};
  return (
    <div ref={box} className="flush" {...scrolls}>
      {children}
    </div>
  );
}

/** The heading of a view; also the title of the window. */
export function Title({
  children,
  text,
  sub,
  actions,
}: {
  children: ReactNode;
  text: string;
  sub?: ReactNode;
  actions?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${text} · IdGen`;
  }, [text]);
  return (
    <div className="title">
      <div className="grow">
        <Heading order={1}>{children}</Heading>
        {sub && (
          <Text c="dimmed" component="p">
            {sub}
          </Text>
        )}
      </div>
      {actions && <div className="row">{actions}</div>}
    </div>
  );
}

/** A problem in full: what the node said, and what can be done. */
export function ProblemBox({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const t = useT();
  const problem = asProblem(error);
  const after = problem.retryAfter;
  return (
    <Notice
      tone="bad"
      role="alert"
      actions={
        retry &&
        (problem.retriable || problem.status === 0) && (
          <Button icon="retry" onClick={retry}>
            {t.common.retry}
          </Button>
        )
      }
    >
      <p>
        {problem.code === 'NETWORK' ? t.problem.network : problem.detail}{' '}
        <code className="mute">{problem.code}</code>
      </p>
      {problem.retriable && after !== null && (
        <p className="small">{t.problem.after(duration(after, t.units))}</p>
      )}
    </Notice>
  );
}

/** The problem of a call that changes something. It is not repeated by itself. */
export function ActionProblem({ problem }: { problem: Problem | null }) {
  const t = useT();
  if (problem === null) return null;
  return (
    <>
      <ProblemBox error={problem} />
      {problem.unknownOutcome && <p className="hint">{t.problem.unknown}</p>}
    </>
  );
}

export function Loading() {
  const t = useT();
  return (
    <p className="loading" role="status">
      <Loader size={16} color="gray" aria-hidden="true" /> {t.common.loading}
    </p>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="empty">{children}</p>;
}

let clockListeners = new Set<() => void>();
let clockNow = Date.now();
let clockTimer: ReturnType<typeof setInterval> | undefined;

/** The time, once a second, for ages. One timer for the whole page. */
export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      clockListeners = new Set(clockListeners).add(listener);
      clockTimer ??= setInterval(() => {
        clockNow = Date.now();
        for (const each of clockListeners) each();
      }, 1000);
      return () => {
        clockListeners = new Set([...clockListeners].filter((each) => each !== listener));
        if (clockListeners.size === 0) {
          clearInterval(clockTimer);
          clockTimer = undefined;
        }
      };
    },
    () => clockNow,
  );
}

/** A point in time; the full one in the title. */
export function Time({ ms, full }: { ms: number | null; full?: boolean }) {
  const t = useT();
  const now = useNow();
  if (ms === null) return <span className="mute">{t.common.never}</span>;
  return (
    <time dateTime={iso(ms)} title={`${dateTime(ms)} (${iso(ms)})`}>
      {full ? dateTime(ms) : when(ms, now)}
    </time>
  );
}

/** How long ago; ages by itself. */
export function Ago({ ms }: { ms: number | null }) {
  const t = useT();
  const now = useNow();
  if (ms === null) return <span className="mute">{t.common.never}</span>;
  const s = Math.max(0, (serverNow(now) - ms) / 1000);
  return (
    <time dateTime={iso(ms)} title={dateTime(ms)}>
      {s < 1.5 ? t.common.justNow : t.common.ago(duration(Math.floor(s), t.units))}
    </time>
  );
}

/** Copies `text`; says so for two seconds. */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const t = useT();
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), 2000);
  };
  return (
    <Button
      kind={label ? 'plain' : 'quiet'}
      icon={copied ? 'ok' : 'copy'}
      onClick={copy}
      aria-label={label ? undefined : t.common.copy}
      title={t.common.copy}
    >
      {copied ? t.common.copied : label}
    </Button>
  );
}

async function copyText(text: string): Promise<void> {
  // `navigator.clipboard` is there on https and localhost only.
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  (document.querySelector('[role=dialog]') ?? document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** Long text of operators: cut to some lines, whole on demand. */
export function LongText({ text }: { text: string }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  const long = text.length > 300 || text.split('\n').length > 4;
  return (
    <>
      <span className={open ? 'long open' : 'long'}>
        {long && !open ? text.slice(0, 300) : text}
      </span>
      {long && (
        <TextButton onClick={() => setOpen(!open)}>
          {open ? t.common.less : t.common.more}
        </TextButton>
      )}
    </>
  );
}
