import type { Signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { NewComment } from '../../data/actions.ts';
import type { TaskView } from '../../data/tasks.ts';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon.tsx';

export type GivenComment = NonNullable<TaskView['review']>['comments'][number];

/** The lines that a new comment is about; null: the whole file. */
export type Selection = { readonly from: number; readonly to: number } | null;

/** The path of a comment on the whole work: the project's folder. */
export const allChanges = '.';

const linesOf = (path: string, from: number | undefined, to: number | undefined): string =>
  from === undefined
    ? path === allChanges
      ? 'all changes'
      : 'the file'
    : to === undefined || to === from
      ? `line ${from}`
      : `lines ${from} to ${to}`;

/** A comment that was sent, with the answer of the agent. */
export const Given = ({ comment }: { comment: GivenComment }) => (
  <div class="thread">
    <p>
      <strong>You</strong>{' '}
      <span class="quiet small">
        on attempt {comment.attempt}, {linesOf(comment.path, comment.line, comment.end_line)}
      </span>
      {!comment.open && (
        <span class="pill tone-done tint-done">
          <Icon name="check" />
          answered
        </span>
      )}
    </p>
    <p>{comment.text}</p>
    {comment.answer !== undefined && (
      <div class="thread-answer">
        <p class="quiet small">attempt {comment.answered_by}</p>
        <p>{comment.answer}</p>
      </div>
    )}
  </div>
);

export const Pending = ({
  comment,
  pending,
}: {
  comment: NewComment;
  pending: Signal<readonly NewComment[]>;
}) => (
  <div class="thread pending">
    <p>
      <strong>Your comment</strong>{' '}
      <span class="quiet small">
        {linesOf(comment.path, comment.line, comment.end_line)}, goes to the agent when you send
        back
      </span>
      <Button
        kind="quiet"
        onPress={() => {
          pending.value = pending.value.filter((each) => each !== comment);
        }}
      >
        Remove
      </Button>
    </p>
    <p>{comment.text}</p>
  </div>
);

export const WriteComment = ({
  path,
  selection,
  text,
  onMore,
  onAdd,
  onDiscard,
}: {
  path: string;
  selection: Selection;
  /** It stays while more lines are chosen. */
  text: Signal<string>;
  /** Chooses the next line, too; absent at the last one. */
  onMore?: () => void;
  onAdd: (text: string, selection: Selection) => void;
  onDiscard: () => void;
}) => {
  const place = linesOf(path, selection?.from, selection?.to);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const add = (): void => {
    if (text.value.trim() === '') return;
    onAdd(text.value.trim(), selection);
    text.value = '';
  };
  return (
    <div class="thread writing">
      <p>
        <strong>New comment</strong> <span class="quiet small">{place}</span>
      </p>
      <textarea
        ref={field}
        rows={2}
        maxLength={2_000}
        aria-label={`Comment on ${place}`}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
        }}
        onKeyDown={({ key, ctrlKey, metaKey }) => {
          if (key === 'Enter' && (ctrlKey || metaKey)) add();
          if (key === 'Escape') onDiscard();
        }}
      />
      <div class="actions">
        <Button kind="primary" onPress={add}>
          Add comment
        </Button>
        <Button kind="quiet" onPress={onDiscard}>
          Discard
        </Button>
        {onMore !== undefined && (
          <Button kind="quiet" hint="Shift chooses more lines" onPress={onMore}>
            One line more
          </Button>
        )}
      </div>
    </div>
  );
};
