import type { ChangedFile } from '../../model/diff.ts';

/** Counts of added and removed lines; nothing where no line was. */
export const Counts = ({ added, removed }: Pick<ChangedFile, 'added' | 'removed'>) => (
  <>
    {added > 0 && <span class="tone-done">+{added.toLocaleString('en')}</span>}{' '}
    {removed > 0 && <span class="tone-fail">−{removed.toLocaleString('en')}</span>}
  </>
);
