// Starts the page: the address, the clock, the event stream, and the view.
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style/base.css';
import './style/frame.css';
import './style/parts.css';
import './style/lists.css';
import './style/table.css';
import './style/views.css';
import { api, read } from './api/client';
import { startLive } from './api/live';
import { caller } from './api/session';
import { App } from './app';
import { followAddress } from './navigation/route';
import { notify } from './parts/action';
import { startClock } from './parts/values';

followAddress();
startClock();
startLive();
read(api.GET('/v1/me')).then(
  found => (caller.value = found),
  (failure: unknown) => notify(failure instanceof Error ? failure.message : String(failure), true),
);

const target = document.getElementById('page');
if (target !== null) render(<App />, target);
