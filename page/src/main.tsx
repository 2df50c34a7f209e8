// Starts the page: the address, the clock, the event stream, and the view.
import './format/locale';
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style/base.css';
import './style/frame.css';
import './style/parts.css';
import './style/lists.css';
import './style/table.css';
import './style/views.css';
import { api, read, sentence } from './api/client';
import { startLive } from './api/live';
import { caller, token } from './api/session';
import { App } from './app';
import { followAddress } from './navigation/route';
import { notify } from './parts/action';
import { startClock } from './parts/values';

followAddress();
startClock();
startLive();
// Another token may have another role.
token.subscribe(() => {
  read(api.GET('/v1/me')).then(
    found => (caller.value = found),
    (failure: unknown) => notify(sentence(failure), true),
  );
});

const target = document.getElementById('page');
if (target !== null) render(<App />, target);
