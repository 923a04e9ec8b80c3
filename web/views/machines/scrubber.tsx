import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { isRecorded } from '../../data/source.ts';
import { clockWithSeconds } from '../../model/format.ts';
import type { Machine, Moment } from '../../model/moments.ts';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon.tsx';
import type { Shown } from './moment.ts';

const playMs = 400;
/** More ticks than this are too close to tell apart. */
const ticksAtMost = 600;

const Ticks = ({ moments }: { moments: readonly Moment[] }) => {
  const step = Math.max(1, Math.ceil(moments.length / ticksAtMost));
  const last = Math.max(1, moments.length - 1);
  const marks = (kind: Machine): string =>
    moments
      .map(({ machine }, index) =>
        machine === kind && index % step === 0 ? `M${index},0v${kind === 'task' ? 14 : 7}` : '',
      )
      .join('');
  return (
    <svg
      class="ticks"
      width="100%"
      height="14"
      viewBox={`0 0 ${last} 14`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={marks('agent')} />
      <path class="task" d={marks('task')} />
    </svg>
  );
};

/** One position in the journal; all panes show it. */
export const Scrubber = ({
  shown: { all: moments, index, choose, isLatest },
}: {
  shown: Shown;
}) => {
  const isPlaying = useSignal(false);
  const last = moments.length - 1;
  const go = (to: number): void => choose(Math.min(last, Math.max(0, to)));
  useEffect(() => {
    if (!isPlaying.value) return undefined;
    const timer = setTimeout(() => {
      if (index >= last) isPlaying.value = false;
      else go(index + 1);
    }, playMs);
    return () => clearTimeout(timer);
  });
  const play = (): void => {
    if (!isPlaying.value && index >= last) go(0);
    isPlaying.value = !isPlaying.value;
  };
  if (moments.length < 2) return null;
  const latest = isRecorded() ? 'Latest' : isLatest ? 'Live' : 'Back to live';
  return (
    <footer class="scrubber">
      <Button label="Entry before" hotkey="ArrowLeft" onPress={() => go(index - 1)}>
        <Icon name="left" />
      </Button>
      <Button label={isPlaying.value ? 'Stop' : 'Play'} onPress={play}>
        <Icon name={isPlaying.value ? 'pause' : 'play'} />
      </Button>
      <Button label="Entry after" hotkey="ArrowRight" onPress={() => go(index + 1)}>
        <Icon name="right" />
      </Button>
      <label class="scrub">
        <span class="hidden">Entry of the journal</span>
        <input
          type="range"
          min="0"
          max={last}
          value={index}
          aria-valuetext={`seq ${moments[index]?.seq}, ${moments[index]?.state}`}
          onInput={({ currentTarget }) => {
            isPlaying.value = false;
            choose(Number(currentTarget.value));
          }}
        />
        <Ticks moments={moments} />
      </label>
      <span class="scrub-at mono quiet">
        seq {moments[index]?.seq}, {clockWithSeconds(moments[index]?.at ?? 0)}
      </span>
      <Button
        kind={isLatest ? 'plain' : 'primary'}
        whyNot={isLatest ? 'This is the latest entry' : null}
        onPress={() => choose(null)}
      >
        {latest}
      </Button>
    </footer>
  );
};
