/** The small parts that every view is made of. */
import {
  type ButtonHTMLAttributes,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { asProblem, type Problem } from '../api/client';
import { useT } from '../i18n';
import { serverNow } from '../lib/clock';
import { dateTime, duration, iso, when } from '../lib/format';
import { Icon, type IconName } from './icons';

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: 'primary' | 'danger' | 'plain' | 'quiet';
  icon?: IconName;
  busy?: boolean;
}

/** A button. While `busy` it stays focused and does nothing. */
export function Button({ kind = 'plain', icon, busy, children, className, ...rest }: ButtonProps) {
  const { onClick, ...other } = rest;
  return (
    <button
      type="button"
      {...other}
      className={`btn ${kind} ${className ?? ''}`}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'mute';

const toneIcon: Partial<Record<Tone, IconName>> = { ok: 'ok', warn: 'alert', bad: 'down' };

/** A state in a word. Never by colour alone: it has an icon and a text. */
export function Badge({
  tone,
  children,
  title,
}: {
  tone: Tone;
  children: ReactNode;
  title?: string;
}) {
  const icon = toneIcon[tone];
  return (
    <span className={`badge ${tone}`} title={title}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
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
    <section className={`card ${className ?? ''}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {actions && <div className="row">{actions}</div>}
      </header>
      {flush ? <Flush label={id}>{children}</Flush> : <div className="body">{children}</div>}
    </section>
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
        <h1>{children}</h1>
        {sub && <p className="sub">{sub}</p>}
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
    <div className="problem" role="alert">
      <Icon name="alert" />
      <div className="grow">
        <p>
          {problem.code === 'NETWORK' ? t.problem.network : problem.detail}{' '}
          <code className="mute">{problem.code}</code>
        </p>
        {problem.retriable && after !== null && (
          <p className="small">{t.problem.after(duration(after, t.units))}</p>
        )}
      </div>
      {retry && (problem.retriable || problem.status === 0) && (
        <Button icon="retry" onClick={retry}>
          {t.common.retry}
        </Button>
      )}
    </div>
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
      {t.common.loading}
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
  (document.querySelector('dialog[open]') ?? document.body).append(area);
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
        <button type="button" className="link" onClick={() => setOpen(!open)}>
          {open ? t.common.less : t.common.more}
        </button>
      )}
    </>
  );
}
