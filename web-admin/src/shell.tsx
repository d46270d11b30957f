/** What is around every view: where to go, search, who am I, and how fresh all of it is. */
import { Burger, NavLink, useMantineColorScheme } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { STALE_AFTER_MS } from './api/live';
import { live, useLive, useOverview } from './api/queries';
import { useSession } from './api/session';
import { LANGUAGES, type Language, useI18n, useT } from './i18n';
import { duration } from './lib/format';
import { SCHEMES, type Scheme } from './lib/scheme';
import { Search } from './search';
import { Badge, Button, Notice, TextButton, useNow } from './ui/basics';
import { SelectField } from './ui/fields';
import { Icon, type IconName } from './ui/icons';
import { useToast } from './ui/toast';

const PLACES: {
  path: string;
  icon: IconName;
  key: 'overview' | 'types' | 'redis' | 'audit' | 'access' | 'import';
}[] = [
  { path: '/', icon: 'overview', key: 'overview' },
  { path: '/types', icon: 'types', key: 'types' },
  { path: '/redis', icon: 'redis', key: 'redis' },
  { path: '/audit', icon: 'audit', key: 'audit' },
  { path: '/access', icon: 'access', key: 'access' },
  { path: '/import', icon: 'import', key: 'import' },
];

export function Shell({ children }: { children: ReactNode }) {
  const t = useT();
  const [path] = useLocation();
  const [menu, setMenu] = useState(false);
  const { age } = useFreshness();
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere closes the menu
  useEffect(() => {
    setMenu(false);
    window.scrollTo(0, 0);
  }, [path]);
  return (
    <div className={age !== null && age > STALE_AFTER_MS ? 'app stale' : 'app'}>
      <a className="skip" href="#main">
        {t.app.skip}
      </a>
      <header className="top">
        <Burger
          className="menu-button"
          size="sm"
          opened={menu}
          aria-label={t.app.menu}
          aria-expanded={menu}
          aria-controls="side"
          onClick={() => setMenu(!menu)}
        />
        <Link href="/" className="brand">
          IdGen
        </Link>
        <Search />
        <Freshness />
      </header>
      <div id="side" className={menu ? 'side open' : 'side'}>
        <nav aria-label={t.app.nav}>
          {PLACES.map(({ path: to, icon, key }) => {
            const here = to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
            return (
              <NavLink
                key={to}
                component={Link}
                href={to}
                active={here}
                aria-current={here ? 'page' : undefined}
                label={t.nav[key]}
                leftSection={<Icon name={icon} size={18} />}
                rightSection={key === 'overview' && <AttentionCount />}
              />
            );
          })}
        </nav>
        <Preferences />
      </div>
      <main id="main" tabIndex={-1}>
        <Updated />
        {children}
      </main>
    </div>
  );
}

function AttentionCount() {
  const t = useT();
  const { data } = useOverview();
  const urgent = data?.attention.filter((each) => each.severity !== 'info') ?? [];
  if (urgent.length === 0) return null;
  const critical = urgent.some((each) => each.severity === 'critical');
  return (
    <Badge tone={critical ? 'bad' : 'warn'} plain title={t.app.needAttention(urgent.length)}>
      {urgent.length}
      <span className="hidden"> {t.app.needAttention(urgent.length)}</span>
    </Badge>
  );
}

/** How old the newest data are, in milliseconds; null before the first. */
function useFreshness(): { age: number | null; polled: boolean } {
  const { link, heardAt } = useLive();
  const { dataUpdatedAt } = useOverview();
  useNow();
  const streamed = heardAt === null ? null : performance.now() - heardAt;
  const asked = dataUpdatedAt > 0 ? Date.now() - dataUpdatedAt : null;
  const ages = [streamed, asked].filter((age) => age !== null);
  return { age: ages.length > 0 ? Math.max(0, Math.min(...ages)) : null, polled: link !== 'live' };
}

function Freshness() {
  const t = useT();
  const { link, node } = useLive();
  const { data } = useOverview();
  const { age, polled } = useFreshness();
  const old = age !== null && age > STALE_AFTER_MS;
  const [tone, text] =
    age === null
      ? ['mute', t.live.connecting]
      : old
        ? ['bad', t.live.old(duration(Math.floor(age / 1000), t.units))]
        : polled
          ? ['warn', link === 'connecting' ? t.live.connecting : t.live.reconnecting]
          : ['ok', t.live.live];
  return (
    <div className={`fresh ${tone}`} data-testid="freshness">
      <span className="dot" aria-hidden="true" />
      {/* Changes of the word are announced, not each second of an age. */}
      <span role="status" className="hidden">
        {old ? t.live.isOld : text}
      </span>
      <span aria-hidden="true">{text}</span>
      {link === 'broken' && <TextButton onClick={() => live.retryNow()}>{t.live.now}</TextButton>}
      <span className="node mute" title={t.live.node}>
        {node ?? data?.node ?? ''}
      </span>
    </div>
  );
}

/** The node runs another version than the one that this page came from. */
function Updated() {
  const t = useT();
  const { version } = useLive();
  const [first, setFirst] = useState(version);
  useEffect(() => {
    if (first === null && version !== null) setFirst(version);
  }, [first, version]);
  if (version === null || first === null || version === first) return null;
  return (
    <Notice
      role="status"
      actions={
        <Button icon="retry" onClick={() => window.location.reload()}>
          {t.app.reload}
        </Button>
      }
    >
      {t.app.updated(version)}
    </Notice>
  );
}

function Preferences() {
  const { t, language, setLanguage } = useI18n();
  const { session, logout } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme({
    // To stop them, the library would inject a <style>, which the policy forbids.
    keepTransitions: true,
  });
  const toast = useToast();
  return (
    <aside className="prefs" aria-label={t.app.prefs}>
      <SelectField
        label={t.app.language}
        value={language}
        onChange={setLanguage}
        options={Object.entries(LANGUAGES) as [Language, string][]}
      />
      <SelectField
        label={t.app.scheme}
        value={colorScheme as Scheme}
        onChange={setColorScheme}
        options={SCHEMES.map((each) => [each, t.app.schemes[each]] as const)}
      />
      {session && (
        <div className="me">
          <Link href="/access" title={t.app.me}>
            <Icon name="user" />
            <span className="cut">{session.account.name}</span>
          </Link>
          <span className="mute small">{t.roles[session.account.role]}</span>
          <Button
            kind="quiet"
            onClick={() => {
              logout().catch(() => toast(t.problem.network));
            }}
          >
            {t.app.logout}
          </Button>
        </div>
      )}
    </aside>
  );
}
