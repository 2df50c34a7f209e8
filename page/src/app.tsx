// The frame around every view: navigation, the state of the connection, the dialog for the token.
import type { ComponentChildren } from 'preact';
import { connection } from './api/live';
import { caller, setToken, token } from './api/session';
import { formatRoute, route } from './navigation/route';
import { Notices } from './parts/action';
import { TokenDialog } from './parts/token-dialog';
import { ActorsView } from './views/actors/actors-view';
import { AdviceView } from './views/advice/advice-view';
import { OverviewView } from './views/overview/overview-view';
import { QueueView } from './views/queue/queue-view';
import { TableView } from './views/table/table-view';
import { TablesView } from './views/tables/tables-view';

const VIEWS = [
  { path: '', title: 'Overview' },
  { path: 'tables', title: 'Tables' },
  { path: 'queue', title: 'Queue' },
  { path: 'actors', title: 'Actors' },
  { path: 'advice', title: 'Advice' },
] as const;

export function App() {
  const [view = '', name] = route.value.path;
  const title = name ?? VIEWS.find(one => one.path === view)?.title ?? 'Not found';
  document.title = `${title} · Lakewright`;
  return (
    <>
      <a class="skip-link" href="#content" onClick={skipToContent}>
        Skip to content
      </a>
      <nav class="side" aria-label="Views">
        <a class="brand" href={formatRoute([])} aria-label="Lakewright, overview">
          <Mark />
          <span>Lakewright</span>
        </a>
        <ul>
          {VIEWS.map(one => (
            <li key={one.path}>
              <a
                href={formatRoute(one.path === '' ? [] : [one.path])}
                aria-current={one.path === view ? 'page' : undefined}
              >
                {one.title}
              </a>
            </li>
          ))}
        </ul>
        <div class="side-foot">
          <ConnectionState />
          <Caller />
          {caller.value?.token_required === false && (
            <a class="foot-link" href="docs">
              API documentation
            </a>
          )}
        </div>
      </nav>
      <main id="content" tabIndex={-1}>
        {connection.value === 'lost' && (
          <p class="lost-notice" role="alert">
            The connection to the decider is lost; figures are from the last read. Connecting again…
          </p>
        )}
        {viewOf(view, name)}
      </main>
      <Notices />
      <TokenDialog />
    </>
  );
}

function viewOf(view: string, name: string | undefined): ComponentChildren {
  if (view === '') return <OverviewView />;
  if (view === 'tables') return name === undefined ? <TablesView /> : <TableView key={name} name={name} />;
  if (view === 'queue') return <QueueView />;
  if (view === 'actors') return <ActorsView />;
  if (view === 'advice') return <AdviceView />;
  return <p class="empty">There is no view at this address.</p>;
}

/** The address names the view, so a link to an element of the page would leave it. */
function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

const CONNECTION = {
  connecting: 'Connecting…',
  live: 'Live',
  lost: 'Connection lost',
  hidden: 'Paused',
} as const;

function ConnectionState() {
  return (
    <span class={`connection ${connection.value}`} role="status">
      {CONNECTION[connection.value]}
    </span>
  );
}

function Caller() {
  const known = caller.value;
  if (known === null) return null;
  return (
    <span class="caller">
      {known.token_required ? `Role ${known.role}` : 'No token needed'} · {known.release}
      {token.value !== '' && (
        <button type="button" class="plain" onClick={() => setToken('')}>
          Sign out
        </button>
      )}
    </span>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b6e8f" />
      <path
        d="M6 21c3.3 0 3.3 2.5 6.7 2.5S16 21 19.3 21s3.4 2.5 6.7 2.5"
        fill="none"
        stroke="#9fe0f2"
        stroke-width="2.6"
        stroke-linecap="round"
      />
      <rect x="7" y="8" width="4" height="8" rx="1.3" fill="#fff" />
      <rect x="14" y="8" width="11" height="8" rx="1.3" fill="#fff" />
    </svg>
  );
}
