import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/shell.css';
import './styles/views.css';
import './styles/charts.css';
import './styles/small.css';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { callServer } from './data/call.ts';
import { openServerHistory } from './data/history.ts';
import { goLive } from './data/live.ts';
import { startClock } from './data/now.ts';
import { session, signIn } from './data/session.ts';
import { readFrom } from './data/source.ts';
import { followTotals } from './data/totals.ts';
import { showHints } from './shell/hints.ts';
import { listenToKeys } from './shell/keys.ts';
import { readAddress } from './shell/router.ts';
import { Shell } from './shell/shell.tsx';
import { Login } from './views/login/login.tsx';

const Page = () => {
  const { value } = session;
  const { state } = value;
  useEffect(() => {
    if (state !== 'in') return undefined;
    void goLive();
    return followTotals();
  }, [state]);
  if (value.state === 'out') return <Login message={value.message} />;
  return state === 'in' ? <Shell /> : null;
};

const start = async (): Promise<void> => {
  await signIn();
  readAddress();
};

addEventListener('hashchange', () => {
  if (location.hash.startsWith('#c=')) void start();
});
readFrom({ call: callServer, openHistory: openServerHistory, isRecorded: false });
startClock();
listenToKeys();
showHints();
const root = document.getElementById('page');
// Until the server has answered, the page shows the frame that came with it.
if (root !== null)
  void start().then(() => {
    root.replaceChildren();
    render(<Page />, root);
  });
