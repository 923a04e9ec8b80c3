import { useMemo } from 'preact/hooks';
import type { Frame } from '../../data/frame.ts';
import { duration, markAge } from '../../model/format.ts';
import {
  type Bar,
  createBars,
  lanes,
  marksOf,
  placeOf,
  type Stretch,
  startsOf,
  stretchesOf,
} from '../../model/timeline.ts';
import { whenChanged } from '../../parts/when-changed.ts';

const names: Readonly<Record<(typeof lanes)[number], string>> = {
  queue: 'Queue',
  prepare: 'Prepare',
  model: 'Model',
  tool: 'Tool',
  you: 'You',
  verify: 'Verify',
  close: 'Close',
};
const laneHeight = 17;
const height = lanes.length * laneHeight;
/** More bars than this are too small to tell apart; the newest are drawn. */
const barsAtMost = 400;

const percent = (part: number): string => `${(part * 100).toFixed(3)}%`;

const BarShape = ({ bar, stretches }: { bar: Bar; stretches: readonly Stretch[] }) => {
  const [from, to] = [placeOf(bar.from, stretches), placeOf(bar.to, stretches)];
  const y = lanes.indexOf(bar.lane) * laneHeight + 4;
  const took = duration(bar.to - bar.from);
  return (
    <g>
      <title>
        {names[bar.lane]} {bar.label}, {took}
        {bar.isFailed ? ', failed' : ''}
      </title>
      <rect
        class={`bar bar-${bar.isFailed ? 'failed' : bar.lane} ${bar.isRunning ? 'running' : ''}`}
        x={percent(from)}
        y={y}
        width={percent(Math.max(0.002, to - from))}
        height="9"
        rx="1.500"
      />
      {bar.lane === 'model' && to - from > 0.02 && (
        <text class="bar-label" x={percent((from + to) / 2)} y={y + 7.5}>
          {bar.label}
        </text>
      )}
    </g>
  );
};

const Compressed = ({ stretch }: { stretch: Stretch }) => (
  <g>
    <rect
      class="gap"
      x={percent(stretch.at)}
      y="0"
      width={percent(stretch.width)}
      height={height}
    />
    <text class="gap-label" x={percent(stretch.at + stretch.width / 2)} y="-5">
      {duration(stretch.to - stretch.from)}
    </text>
  </g>
);

/** Where each attempt begins, and the time since then. */
const Times = ({ bars, stretches }: { bars: readonly Bar[]; stretches: readonly Stretch[] }) => {
  const starts = startsOf(bars);
  return (
    <>
      {marksOf(starts, stretches).map(({ at, after }) => {
        const x = percent(placeOf(at, stretches));
        return (
          <g key={at} class="mark">
            <line class="lane-line" x1={x} x2={x} y1="0" y2={height} />
            <text class="gap-label" x={x} y="-5">
              {markAge(after)}
            </text>
          </g>
        );
      })}
      {starts.length > 1 &&
        starts.map((bar) => (
          <text
            key={bar.attempt}
            class="attempt-label"
            x={percent(placeOf(bar.from, stretches))}
            y="-5"
          >
            attempt {bar.attempt}
          </text>
        ))}
    </>
  );
};

const Drawing = whenChanged(({ bars }: { bars: readonly Bar[] }) => {
  // Before the first attempt nothing takes time but waiting.
  if (startsOf(bars).length === 0) return null;
  const stretches = stretchesOf(bars);
  const [first, end] = [stretches[0]?.from ?? 0, stretches.at(-1)?.to ?? 0];
  return (
    <figure class="timeline" aria-label={`Timeline, ${duration(end - first)}`}>
      <div class="lane-names" aria-hidden="true">
        {lanes.map((lane) => (
          <span key={lane}>{names[lane]}</span>
        ))}
      </div>
      <svg class="lanes" height={height + 16} aria-hidden="true">
        <g transform="translate(0 15)">
          {stretches
            .filter(({ isCompressed }) => isCompressed)
            .map((stretch) => (
              <Compressed key={stretch.from} stretch={stretch} />
            ))}
          {lanes.map((lane, index) => (
            <line
              key={lane}
              class="lane-line"
              x1="0"
              x2="100%"
              y1={(index + 1) * laneHeight}
              y2={(index + 1) * laneHeight}
            />
          ))}
          <Times bars={bars} stretches={stretches} />
          {bars.map((bar) => (
            <BarShape
              key={`${bar.lane} ${bar.from} ${bar.label}`}
              bar={bar}
              stretches={stretches}
            />
          ))}
        </g>
      </svg>
    </figure>
  );
});

/**
 * What the attempts did, over time; `now` 0: nothing runs. While something runs, it is drawn once a
 * second.
 */
export const Timeline = ({ frames, now }: { frames: readonly Frame[]; now: number }) => {
  const barsOf = useMemo(createBars, []);
  const latest = now === 0 ? frames.length : frames[0];
  const bars = useMemo(() => {
    const last = Date.parse(frames.at(-1)?.timestamp ?? '') || 0;
    return barsOf(frames, Math.max(now, last)).slice(-barsAtMost);
  }, [now, latest, barsOf]);
  return <Drawing bars={bars} />;
};
