import { type Signal, useSignal } from '@preact/signals';
import { Fragment } from 'preact';
import type { NewComment } from '../../data/actions.ts';
import { isRecorded } from '../../data/source.ts';
import { codeParts } from '../../model/code-colours.ts';
import {
  type ChangedFile,
  type DiffLine,
  firstLines,
  type Hunk,
  type Pair,
  sideBySide,
} from '../../model/diff.ts';
import { numbered } from '../../model/format.ts';
import { LongText } from '../../parts/long-text.tsx';
import { Counts } from './counts.tsx';
import { isSplit } from './layout.tsx';
import { Given, type GivenComment, Pending, type Selection, WriteComment } from './threads.tsx';
import { WholeComments } from './whole-comments.tsx';

interface FileProps {
  readonly id: string;
  readonly file: ChangedFile;
  readonly given: readonly GivenComment[];
  readonly pending: Signal<readonly NewComment[]>;
  readonly isViewed: boolean;
  /** Begins without its lines. */
  readonly isFolded: boolean;
  readonly onViewed: (isViewed: boolean) => void;
}

/** A folded file is unfolded in steps, so that the document stays small. */
const linesAtOnce = 1_000;

const signs = { same: ' ', added: '+', removed: '−' } as const;

const Code = ({ path, text }: { path: string; text: string }) => (
  <>
    {codeParts(path, text).map((part, index) =>
      part.tone === '' ? (
        part.text
      ) : (
        <span key={`${index}`} class={part.tone}>
          {part.text}
        </span>
      ),
    )}
  </>
);

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
          data-stop={`${path}:${after}`}
          aria-label={`Comment on line ${after} of ${path}`}
          onClick={({ shiftKey }) => onSelect(after, shiftKey)}
        >
          {after}
        </button>
      )}
      <span class="sign">{signs[line.kind]}</span>
      <code>
        <LongText text={line.text} draw={(text) => <Code path={path} text={text} />} />
        {line.isOpenEnd === true && <span class="quiet"> (no newline at the end)</span>}
      </code>
    </div>
  );
};

const commentOn = (path: string, text: string, lines: Selection): NewComment => {
  if (lines === null) return { path, text };
  const { from, to } = lines;
  return { path, line: from, ...(to > from ? { end_line: to } : {}), text };
};

type HunksProps = Pick<FileProps, 'file' | 'given' | 'pending'>;

const Hunks = ({ file, given, pending }: HunksProps) => {
  const selection = useSignal<Selection>(null);
  const text = useSignal('');
  const shown = new Set(
    file.hunks.flatMap(({ lines }) => lines.flatMap(({ after: number }) => number ?? [])),
  );
  const select = (line: number, isMore: boolean): void => {
    const now = selection.value;
    selection.value =
      isMore && now !== null
        ? { from: Math.min(now.from, line), to: Math.max(now.to, line) }
        : { from: line, to: line };
  };
  const chooseNext = (): void => select((selection.value?.to ?? 0) + 1, true);
  const add = (words: string, lines: Selection): void => {
    pending.value = [...pending.value, commentOn(file.path, words, lines)];
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
          path={file.path}
          selection={selection.value}
          text={text}
          {...(shown.has(selection.value.to + 1) ? { onMore: chooseNext } : {})}
          onAdd={add}
          onDiscard={() => {
            selection.value = null;
            text.value = '';
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
  const drawLine = (line: DiffLine) => (
    <Fragment key={`${line.before} ${line.after}`}>
      <Line line={line} path={file.path} isSelected={isSelected(line)} onSelect={select} />
      {after(line)}
    </Fragment>
  );
  const drawPair = ({ left, right }: Pair) => (
    <Fragment key={`${left?.before} ${right?.after}`}>
      <div class="diff-pair">
        {[left, right].map((line, side) =>
          line === null ? (
            <div key={`${side}`} class="diff-line none" />
          ) : (
            <Line
              key={`${side}`}
              line={side === 0 ? { ...line, after: null } : { ...line, before: null }}
              path={file.path}
              isSelected={side === 1 && isSelected(line)}
              onSelect={select}
            />
          ),
        )}
      </div>
      {right !== null && after(right)}
    </Fragment>
  );
  const drawHunk = ({ header, lines }: Hunk) => (
    <Fragment key={header}>
      <div class="hunk">{header}</div>
      {isSplit.value ? sideBySide(lines).map(drawPair) : lines.map(drawLine)}
    </Fragment>
  );
  return <div class="hunks">{file.hunks.map(drawHunk)}</div>;
};

export const FileDiff = ({ id, file, given, pending, isViewed, isFolded, onViewed }: FileProps) => {
  const { size } = file;
  const limit = useSignal(isFolded ? 0 : size);
  const left = size - limit.value;
  const isWriting = useSignal(false);
  const own = { file, given: given.filter(({ path }) => path === file.path), pending };
  return (
    <section id={id} class="file" aria-label={file.path}>
      <header>
        <strong class="mono">{file.path}</strong>
        <Counts {...file} />
        <span class="quiet small">{file.note}</span>
        <span class="file-actions">
          {!isRecorded() && (
            <button
              type="button"
              class="link small"
              aria-label={`Comment on ${file.path}`}
              onClick={() => {
                isWriting.value = true;
              }}
            >
              Comment
            </button>
          )}
          {!isRecorded() && (
            <label class="small">
              <input
                type="checkbox"
                checked={isViewed}
                onChange={({ currentTarget }) => onViewed(currentTarget.checked)}
              />{' '}
              Viewed<span class="hidden"> {file.path}</span>
            </label>
          )}
        </span>
      </header>
      <WholeComments path={file.path} given={given} pending={pending} isWriting={isWriting} />
      {!isViewed && limit.value > 0 && (
        <Hunks {...own} file={{ ...file, hunks: firstLines(file.hunks, limit.value) }} />
      )}
      {!isViewed && left > 0 && (
        <button
          type="button"
          class="link"
          onClick={() => {
            limit.value += linesAtOnce;
          }}
        >
          Show {limit.value > 0 && 'more, '}
          {left > linesAtOnce
            ? `${numbered(linesAtOnce, 'line')} of ${numbered(left, 'line')}`
            : numbered(left, 'line')}
        </button>
      )}
    </section>
  );
};
