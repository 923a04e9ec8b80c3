import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { now } from '../../data/now.ts';
import type { TaskView } from '../../data/tasks.ts';
import { clockWithSeconds, count, duration, money, numbered } from '../../model/format.ts';
import type { LogItem, ToolItem } from '../../model/log.ts';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon.tsx';
import { LongText } from '../../parts/long-text.tsx';
import { whenChanged } from '../../parts/when-changed.ts';

/** More are drawn when they are asked for. */
const itemsAtOnce = 200;
/** The last lines of an output stay; the lines before are folded. */
const linesShown = 6;
const linesUnfolded = 2_000;
const aboutAtMost = 500;

const Output = ({ text, isRunning }: { text: string; isRunning: boolean }) => {
  const isOpen = useSignal(false);
  const lines = text.replace(/\n$/, '').split('\n');
  const shown = isOpen.value ? lines.slice(-linesUnfolded) : lines.slice(-linesShown);
  const hidden = lines.length - shown.length;
  return (
    <div class={`output ${isRunning ? 'running' : ''}`}>
      {hidden > 0 && (
        <button
          type="button"
          class="link"
          onClick={() => {
            isOpen.value = true;
          }}
        >
          Show {numbered(hidden, 'line')} before
        </button>
      )}
      <pre>
        <LongText text={shown.join('\n')} />
      </pre>
    </div>
  );
};

const states = {
  running: ['prompt', 'work'],
  failed: ['cross', 'fail'],
  ok: ['check', 'done'],
} as const;

const Tool = ({ item }: { item: ToolItem }) => {
  const isFolded = useSignal(item.state === 'ok');
  const [icon, tone] = states[item.state];
  const took =
    item.state === 'running'
      ? `running ${duration(Math.max(0, now.value - item.at))}`
      : duration(item.ms ?? 0);
  return (
    <div class="log-tool">
      <button
        type="button"
        class="log-call"
        aria-expanded={!isFolded.value}
        onClick={() => {
          isFolded.value = !isFolded.value;
        }}
      >
        <time>{clockWithSeconds(item.at)}</time>
        <Icon name={icon} tone={tone} />
        <span class="cut mono">
          <strong>{item.tool}</strong> {item.about.split('\n', 1)[0]?.slice(0, aboutAtMost)}
        </span>
        <span class={`took ${item.state === 'running' ? 'tone-work' : ''}`}>
          {item.state === 'failed' ? 'failed · ' : ''}
          {took}
        </span>
      </button>
      {!isFolded.value && item.output !== '' && (
        <Output text={item.output} isRunning={item.state === 'running'} />
      )}
    </div>
  );
};

const noteTones: Readonly<Record<string, string>> = {
  error: 'tone-fail',
  warn: 'tone-need',
  need: 'tone-need',
  done: 'tone-done',
};

/** Most items never change. */
const Item = whenChanged(({ item }: { item: LogItem }) => {
  if (item.kind === 'tool') return <Tool item={item} />;
  if (item.kind === 'turn')
    return (
      <p class="log-turn small">
        <span>Turn {item.turn}</span>
        <span class="quiet">
          {item.ms === null
            ? 'model call'
            : `${duration(item.ms)} · ${count(item.input)} in, ${count(item.output)} out${item.cost === null ? '' : ` · ${money(item.cost)}`}`}
        </span>
      </p>
    );
  return (
    <p class={`log-line ${item.kind === 'note' ? (noteTones[item.level] ?? 'quiet') : ''}`}>
      <time>{clockWithSeconds(item.at)}</time>
      <span>
        <LongText text={item.text} />
      </span>
    </p>
  );
});

const whyEmpty = ({ attempt, status, max_attempts: most }: TaskView): string => {
  if (attempt > 0) return 'This attempt has no entries.';
  if (status !== 'queued' && status !== 'started') return 'No attempt began.';
  return most === undefined
    ? 'No attempt yet. Run the task to see what an agent does.'
    : 'No attempt yet. It begins by itself.';
};

const NothingYet = ({ task, isRead }: { task: TaskView; isRead: boolean }) => (
  <p class="quiet log-empty">{isRead ? whyEmpty(task) : 'Reading the log…'}</p>
);

export const Log = ({
  items,
  missing,
  isRead,
  task,
}: {
  items: readonly LogItem[];
  missing: string | null;
  isRead: boolean;
  task: TaskView;
}) => {
  const box = useRef<HTMLDivElement>(null);
  const isFollowing = useSignal(true);
  const shown = useSignal(itemsAtOnce);
  const hidden = Math.max(0, items.length - shown.value);
  useEffect(() => {
    if (isFollowing.value) box.current?.scrollTo({ top: box.current.scrollHeight });
  });
  return (
    <div class="log-frame">
      <div
        class="log"
        ref={box}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a log that scrolls must be reached by key
        tabIndex={0}
        role="log"
        aria-label="Log"
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isFollowing.value = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {missing !== null && <p class="quiet small">{missing}</p>}
        {hidden > 0 && (
          <button
            type="button"
            class="link"
            onClick={() => {
              shown.value += itemsAtOnce;
            }}
          >
            Show {numbered(Math.min(itemsAtOnce, hidden), 'entry', 'entries')} before
          </button>
        )}
        {items.length === 0 && <NothingYet task={task} isRead={isRead} />}
        {items.slice(hidden).map((item) => (
          <Item key={item.key} item={item} />
        ))}
      </div>
      {task.status === 'started' && !isFollowing.value && (
        <div class="follow">
          <Button
            hotkey="f"
            onPress={() => {
              isFollowing.value = true;
            }}
          >
            Follow
          </Button>
        </div>
      )}
    </div>
  );
};
