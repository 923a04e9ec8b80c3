import { now } from '../data/now.ts';
import { link, reconnectNow } from '../data/stream.ts';
import { health } from '../data/totals.ts';
import { clockWithSeconds, numbered } from '../model/format.ts';
import { Button } from '../parts/button.tsx';
import { Icon } from '../parts/icon.tsx';

/** A short cut is not worth a word. */
const shownAfterMs = 1_000;

export const LiveDot = () => {
  const isLive = link.value.state === 'live' || link.value.state === 'back';
  return (
    <span class="live">
      <span class={`dot ${isLive ? 'dot-live' : 'dot-cut'}`} />
      {isLive ? 'Live' : link.value.state === 'lost' ? 'Cut' : 'Connecting'}
    </span>
  );
};

const Line = () => {
  const current = link.value;
  if (current.state === 'lost' && now.value - current.since >= shownAfterMs)
    return (
      <div class="line tint-wait">
        <Icon name="clock" />
        <span>
          {current.isStopped
            ? 'The server has stopped; agent open starts it again.'
            : 'Reconnecting.'}{' '}
          What you see is from {clockWithSeconds(current.since)}.
        </span>
        <Button onPress={reconnectNow}>Try now</Button>
      </div>
    );
  if (current.state === 'back')
    return (
      <div class="line tint-done tone-done">
        <Icon name="check" />
        <span>
          {current.isReadAnew
            ? 'Back. Everything was read again.'
            : `Back. ${numbered(current.caughtUp, 'entry was', 'entries were')} caught up, nothing is missing.`}
        </span>
      </div>
    );
  const tracker = health.value?.checks['tracker'];
  if (tracker !== undefined && tracker.status !== 'ok')
    return (
      <div class="line tint-need tone-need">
        <Icon name="pause" />
        <span>The tracker is away, what needs it waits: {tracker.detail}</span>
      </div>
    );
  return null;
};

/** Says once what is wrong between the page, the server and the tracker. */
export const ConnectionLine = () => (
  <div role="status" aria-live="polite">
    <Line />
  </div>
);
