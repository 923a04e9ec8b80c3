import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Moment } from '../../model/chart.ts';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon.tsx';

const playMs = 400;
/** More ticks than this are too close to tell apart. */
const ticksAtMost = 600;

interface Given {
  readonly moments: readonly Moment[];
  readonly index: number;
  /** Null: live. */
  readonly choose: (index: number | null) => void;
  readonly isLive: boolean;
}

const Ticks = ({ moments }: Pick<Given, 'moments'>) => {
  const step = Math.max(1, Math.ceil(moments.length / ticksAtMost));
  const last = Math.max(1, moments.length - 1);
  return (
    <svg class="ticks" width="100%" height="14" aria-hidden="true">
      {moments.map(({ seq, machine }, index) =>
        index % step === 0 ? (
          <line
            key={seq}
            class={machine}
            x1={`${(index / last) * 100}%`}
            x2={`${(index / last) * 100}%`}
            y1="0"
            y2={machine === 'task' ? 14 : 7}
          />
        ) : null,
      )}
    </svg>
  );
};

/** One position in the journal; all panes show it. */
export const Scrubber = ({ moments, index, choose, isLive }: Given) => {
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
      <Button
        kind={isLive ? 'plain' : 'primary'}
        whyNot={isLive ? 'This is the latest entry' : null}
        onPress={() => choose(null)}
      >
        {isLive ? 'Live' : 'Back to live'}
      </Button>
    </footer>
  );
};
