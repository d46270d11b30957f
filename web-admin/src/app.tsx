/** Which address shows which view, and what stands before all of them: the login. */
import { Component, lazy, type ReactNode, Suspense, useEffect } from 'react';
import { Redirect, Route, Switch, useLocation } from 'wouter';
import { useSession } from './api/session';
import { useT } from './i18n';
import { Shell } from './shell';
import { Button, Empty, Loading, Notice, ProblemBox, Title } from './ui/basics';
import { Dialog } from './ui/dialog';
import { LoginForm, LoginView } from './views/login';
import { OverviewView } from './views/overview';
import { TypesView } from './views/types';

// What is not on the way of every visit is loaded when it is wanted.
const TypeView = lazy(() => import('./views/type/index'));
const NewTypeView = lazy(() => import('./views/new-type'));
const RedisView = lazy(() => import('./views/redis'));
const AuditView = lazy(() => import('./views/audit'));
const AccessView = lazy(() => import('./views/access'));
const ImportView = lazy(() => import('./views/import'));
const SetupView = lazy(() => import('./views/setup'));

export function App() {
  const { session, error, reload } = useSession();
  const [path] = useLocation();
  if (path === '/setup') {
    return (
      <Suspense fallback={<Loading />}>
        <SetupView />
      </Suspense>
    );
  }
  if (session === undefined) {
    return (
      <main className="alone">
        {error ? <ProblemBox error={error} retry={reload} /> : <Loading />}
      </main>
    );
  }
  if (session === null) {
    if (path === '/login') return <LoginView />;
    const back = `${path}${window.location.search}`;
    return (
      <Redirect to={path === '/' ? '/login' : `/login?next=${encodeURIComponent(back)}`} replace />
    );
  }
  return (
    <>
      <Shell>
        <Boundary key={path}>
          <Suspense fallback={<Loading />}>
            <Switch>
              <Route path="/" component={OverviewView} />
              <Route path="/types" component={TypesView} />
              <Route path="/types/new" component={NewTypeView} />
              <Route path="/types/:name">
                {({ name }) => <TypeView key={name} name={decode(name)} />}
              </Route>
              <Route path="/redis" component={RedisView} />
              <Route path="/audit" component={AuditView} />
              <Route path="/access" component={AccessView} />
              <Route path="/import" component={ImportView} />
              <Route path="/login" component={AfterLogin} />
              <Route component={NotFound} />
            </Switch>
          </Suspense>
        </Boundary>
      </Shell>
      <LostSession />
    </>
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Back to where one came from; to an address of this page only. */
function AfterLogin() {
  const next = new URLSearchParams(window.location.search).get('next') ?? '/';
  return <Redirect to={/^\/(?![/\\])/.test(next) ? next : '/'} replace />;
}

/** The session has ended: log in again, and go on with what is behind. */
function LostSession() {
  const { lost, session, logout } = useSession();
  const t = useT();
  if (!lost) return null;
  return (
    <Dialog title={t.login.again} onClose={() => void logout()}>
      <p className="hint">{t.login.lost}</p>
      <LoginForm name={session?.account.name ?? ''} />
    </Dialog>
  );
}

function NotFound() {
  const t = useT();
  return (
    <>
      <Title text={t.app.notFound}>{t.app.notFound}</Title>
      <Empty>{t.app.notFoundHint}</Empty>
    </>
  );
}

/** A defect of one view must not take the others away. */
class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override render() {
    return this.state.error ? <Broken error={this.state.error} /> : this.props.children;
  }
}

function Broken({ error }: { error: Error }) {
  const t = useT();
  // A part of the page that is gone: the node has a newer page.
  useEffect(() => console.error(error), [error]);
  return (
    <Notice
      tone="bad"
      role="alert"
      actions={
        <Button icon="retry" onClick={() => window.location.reload()}>
          {t.app.reload}
        </Button>
      }
    >
      <p>{t.app.broken}</p>
      <p className="small">{error.message}</p>
    </Notice>
  );
}
