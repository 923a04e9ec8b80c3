import { type Signal, useSignal } from '@preact/signals';
import type { NewComment } from '../../data/actions.ts';
import { isRecorded } from '../../data/source.ts';
import { allChanges, Given, type GivenComment, Pending, WriteComment } from './threads.tsx';

interface WholeProps {
  readonly path: string;
  /** Of all files. */
  readonly given: readonly GivenComment[];
  readonly pending: Signal<readonly NewComment[]>;
  readonly isWriting: Signal<boolean>;
}

/** Comments on a whole file, or on all changes. */
export const WholeComments = ({ path, given, pending, isWriting }: WholeProps) => {
  const text = useSignal('');
  return (
    <>
      {given
        .filter((each) => each.path === path && each.line === undefined)
        .map((each) => (
          <Given key={each.id} comment={each} />
        ))}
      {pending.value
        .filter((each) => each.path === path && each.line === undefined)
        .map((each) => (
          <Pending key={each.text} comment={each} pending={pending} />
        ))}
      {isWriting.value && (
        <WriteComment
          path={path}
          selection={null}
          text={text}
          onAdd={(text) => {
            pending.value = [...pending.value, { path, text }];
            isWriting.value = false;
          }}
          onDiscard={() => {
            isWriting.value = false;
          }}
        />
      )}
    </>
  );
};

/** Comments on the work as a whole, above its files. */
export const AllChanges = ({ given, pending }: Pick<WholeProps, 'given' | 'pending'>) => {
  const isWriting = useSignal(false);
  return (
    <section class="file" aria-label="All changes">
      <header>
        <strong>All changes</strong>
        {!isRecorded() && (
          <span class="file-actions">
            <button
              type="button"
              class="link small"
              aria-label="Comment on all changes"
              onClick={() => {
                isWriting.value = true;
              }}
            >
              Comment
            </button>
          </span>
        )}
      </header>
      <WholeComments path={allChanges} given={given} pending={pending} isWriting={isWriting} />
    </section>
  );
};
