import { type Signal, useSignal } from '@preact/signals';
import { Fragment } from 'preact';
import type { NewComment } from '../../data/actions.ts';
import { isRecorded } from '../../data/source.ts';
import type { ChangedFile, DiffLine, Hunk } from '../../model/diff.ts';
import { numbered } from '../../model/format.ts';
import { Given, type GivenComment, Pending, WriteComment } from './threads.tsx';

/** A longer file is folded. */
const linesAtMost = 500;

interface FileProps {
  readonly id: string;
  readonly file: ChangedFile;
  readonly given: readonly GivenComment[];
  readonly pending: Signal<readonly NewComment[]>;
}

/** The lines that a new comment is about. */
interface Selection {
  readonly from: number;
  readonly to: number;
}

const signs = { same: ' ', added: '+', removed: '−' } as const;

const Line = ({
  line,
  path,
  isSelected,
  onSelect,
}: {
  line: DiffLine;
  path: string;
  isSelected: boolean;
  onSelect: (line: number, isMore: boolean) => void;
}) => {
  const { after } = line;
  return (
    <div class={`diff-line ${line.kind} ${isSelected ? 'selected' : ''}`}>
      <span class="ln">{line.before}</span>
      {after === null || isRecorded() ? (
        <span class="ln">{after}</span>
      ) : (
        <button
          type="button"
          class="ln"
          aria-label={`Comment on line ${after} of ${path}`}
          onClick={({ shiftKey }) => onSelect(after, shiftKey)}
        >
          {after}
        </button>
      )}
      <span class="sign">{signs[line.kind]}</span>
      <code>{line.text}</code>
    </div>
  );
};

const Hunks = ({ file, given, pending }: Omit<FileProps, 'id'>) => {
  const selection = useSignal<Selection | null>(null);
  const select = (line: number, isMore: boolean): void => {
    const now = selection.value;
    selection.value =
      isMore && now !== null
        ? { from: Math.min(now.from, line), to: Math.max(now.to, line) }
        : { from: line, to: line };
  };
  const add = (text: string, { from, to }: Selection): void => {
    const range = to > from ? { end_line: to } : {};
    pending.value = [...pending.value, { path: file.path, line: from, ...range, text }];
    selection.value = null;
  };
  const endsAt = (line: DiffLine, end: number | undefined): boolean =>
    line.after !== null && line.after === end;
  const after = (line: DiffLine) => (
    <>
      {given
        .filter((each) => endsAt(line, each.end_line ?? each.line))
        .map((each) => (
          <Given key={each.id} comment={each} />
        ))}
      {pending.value
        .filter((each) => each.path === file.path && endsAt(line, each.end_line ?? each.line))
        .map((each) => (
          <Pending key={`${each.line} ${each.text}`} comment={each} pending={pending} />
        ))}
      {selection.value !== null && endsAt(line, selection.value.to) && (
        <WriteComment
          selection={selection.value}
          onAdd={add}
          onDiscard={() => {
            selection.value = null;
          }}
        />
      )}
    </>
  );
  const isSelected = ({ after: number }: DiffLine): boolean =>
    number !== null &&
    selection.value !== null &&
    number >= selection.value.from &&
    number <= selection.value.to;
  const drawHunk = ({ header, lines }: Hunk) => (
    <Fragment key={header}>
      <div class="hunk">{header}</div>
      {lines.map((line) => (
        <Fragment key={`${line.before} ${line.after}`}>
          <Line line={line} path={file.path} isSelected={isSelected(line)} onSelect={select} />
          {after(line)}
        </Fragment>
      ))}
    </Fragment>
  );
  return <div class="hunks">{file.hunks.map(drawHunk)}</div>;
};

export const FileDiff = ({ id, file, given, pending }: FileProps) => {
  const size = file.hunks.reduce((sum, { lines }) => sum + lines.length, 0);
  const isOpen = useSignal(size <= linesAtMost);
  return (
    <section id={id} class="file" aria-label={file.path}>
      <header>
        <strong class="mono">{file.path}</strong>
        <span class="tone-done">+{file.added}</span>
        {file.removed > 0 && <span class="tone-fail">−{file.removed}</span>}
        <span class="quiet small">{file.note}</span>
      </header>
      {isOpen.value ? (
        <Hunks
          file={file}
          given={given.filter(({ path }) => path === file.path)}
          pending={pending}
        />
      ) : (
        <button
          type="button"
          class="link"
          onClick={() => {
            isOpen.value = true;
          }}
        >
          Show {numbered(size, 'line')}
        </button>
      )}
    </section>
  );
};
