import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call } from '../../data/source.ts';
import type { TaskView } from '../../data/tasks.ts';
import { type Chart, type Scene, waysBetween } from '../../model/chart.ts';
import { clockWithSeconds } from '../../model/format.ts';
import type { Moment } from '../../model/moments.ts';
import { Icon } from '../../parts/icon.tsx';

interface Explanation {
  readonly guards: readonly {
    readonly guard: string;
    readonly value: boolean;
    readonly inputs: Readonly<Record<string, unknown>>;
  }[];
  readonly allowed_events: readonly string[];
  readonly reason: string | null;
}

const LastTransition = ({ chart, moment }: { chart: Chart; moment: Moment | null }) => {
  if (moment === null) return <p class="quiet">No transition yet.</p>;
  const ways = moment.before === null ? [] : waysBetween(chart, moment.before, moment.state);
  return (
    <>
      <p class="mono">
        {moment.before ?? 'begins'} → {moment.state}
      </p>
      <p class="quiet small">
        at {clockWithSeconds(moment.at)}, attempt {moment.attempt}
        {ways.length === 1 && ` on ${ways[0]?.event}`}
      </p>
      {ways.length === 1 && ways[0]?.guard != null && (
        <p>
          <Icon name="check" tone="done" /> <strong class="mono">{ways[0].guard}</strong>
        </p>
      )}
      {ways.length > 1 && (
        <ul class="ways mono">
          {ways.map(({ event, guard }) => (
            <li key={`${event} ${guard}`}>
              {event}
              {guard !== null && <span class="quiet"> [{guard}]</span>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
};

const Guards = ({ guards }: Pick<Explanation, 'guards'>) => (
  <table>
    <tbody>
      {guards.map(({ guard, value: holds, inputs }) => (
        <tr key={guard} class={holds ? '' : 'refused'}>
          <td class="mono">
            {holds ? <Icon name="check" tone="done" /> : '–'} {guard}
          </td>
          <td class="mono quiet">
            {Object.entries(inputs)
              .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
              .join(', ')}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** What `explain` says now; `seq` of the latest transition: asked again when it changes. */
const Now = ({ taskId, seq }: { taskId: string; seq: number }) => {
  const found = useSignal<Explanation | null>(null);
  useEffect(() => {
    let isCurrent = true;
    call<Explanation>('explain', { task_id: taskId }).then(
      (explanation) => {
        if (isCurrent) found.value = explanation;
      },
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [taskId, seq, found]);
  if (found.value === null) return null;
  const { allowed_events: allowed, guards, reason } = found.value;
  return (
    <>
      <section>
        <h2>Events allowed now</h2>
        <ul class="events mono">
          {allowed.map((event) => (
            <li key={event}>{event}</li>
          ))}
        </ul>
        {reason !== null && <p class="quiet small">{reason}</p>}
      </section>
      <section>
        <h2>Guards of a run</h2>
        <Guards guards={guards} />
      </section>
    </>
  );
};

const shownKeys = [
  ...['status', 'phase', 'role', 'attempt', 'model', 'started_at', 'completed_at'],
  ...['deadline_at', 'unmet_dependencies', 'parked_until', 'parked_reason', 'error', 'usage'],
];

const fieldsOf = (task: TaskView | null): readonly (readonly [string, string])[] =>
  Object.entries(task ?? {})
    .filter(([name]) => shownKeys.includes(name))
    .map(([name, value]) => [name, JSON.stringify(value) ?? '']);

const Context = ({ task, before }: { task: TaskView; before: TaskView | null }) => {
  const earlier = new Map(fieldsOf(before));
  return (
    <section>
      <h2>
        The task <span class="quiet">marked: changed by this entry</span>
      </h2>
      <table>
        <tbody>
          {fieldsOf(task).map(([name, value]) => (
            <tr key={name} class={before !== null && earlier.get(name) !== value ? 'changed' : ''}>
              <td class="mono quiet">{name}</td>
              <td class="mono value">{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};

interface Given {
  readonly taskId: string;
  readonly chart: Chart;
  readonly scene: Scene;
  readonly moment: Moment | null;
  readonly previous: Moment | null;
  readonly place: string;
  readonly isLive: boolean;
}

export const Facts = ({ taskId, chart, scene, moment, previous, place, isLive }: Given) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by the keyboard
  <aside class="machine-facts" tabIndex={0} aria-label="About this moment">
    <section>
      <h2>
        seq {moment === null ? '–' : moment.seq.toLocaleString('en')}
        {isLive ? ', live' : ''} <span class="quiet">{place}</span>
      </h2>
    </section>
    <section>
      <h2>Last transition</h2>
      <LastTransition chart={chart} moment={scene.latest} />
    </section>
    {isLive && <Now taskId={taskId} seq={moment?.seq ?? 0} />}
    {moment?.task != null && <Context task={moment.task} before={previous?.task ?? null} />}
  </aside>
);
