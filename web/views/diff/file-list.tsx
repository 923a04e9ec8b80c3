import type { Signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { NewComment } from '../../data/actions.ts';
import type { ChangedFile } from '../../model/diff.ts';
import { numbered } from '../../model/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Counts } from './counts.tsx';
import { type FilePage, FilePages, filesAtOnce } from './file-pages.tsx';
import { LayoutSwitch } from './layout.tsx';

interface FilesProps {
  readonly all: readonly ChangedFile[];
  /** Those with `words` in their path. */
  readonly found: readonly ChangedFile[];
  readonly words: Signal<string>;
  readonly page: FilePage;
  readonly first: Signal<number>;
  readonly pending: readonly NewComment[];
  readonly viewed: ReadonlySet<string>;
}

const sumOf = (files: readonly ChangedFile[], key: 'added' | 'removed'): number =>
  files.reduce((sum, file) => sum + file[key], 0);

const Find = ({ words, first }: Pick<FilesProps, 'words' | 'first'>) => (
  <input
    type="text"
    class="find-file"
    aria-label="Find files by name"
    placeholder="Find files by name"
    value={words.value}
    onInput={({ currentTarget }) => {
      words.value = currentTarget.value;
      first.value = 0;
    }}
  />
);

/** The changed files of a page, with a search by name. */
export const Files = ({ all, found, words, page, first, pending, viewed }: FilesProps) => {
  const sums = useMemo(
    () => ({ added: sumOf(all, 'added'), removed: sumOf(all, 'removed') }),
    [all],
  );
  return (
    <nav class="files" aria-label="Changed files">
      <p>
        <strong>{numbered(all.length, 'file')}</strong> <Counts {...sums} />{' '}
        <span class="quiet small">
          {viewed.size} of {all.length.toLocaleString('en')} viewed
        </span>
      </p>
      <LayoutSwitch />
      {all.length > filesAtOnce && <Find words={words} first={first} />}
      {found.length === 0 && <p class="small">No file has “{words.value}” in its name.</p>}
      <FilePages total={found.length} page={page} first={first} />
      {page.files.map(({ file }, index) => {
        const comments = pending.filter(({ path }) => path === file.path).length;
        return (
          <button
            key={file.path}
            type="button"
            class="file-link"
            onClick={() => document.getElementById(`file-${index}`)?.scrollIntoView()}
          >
            {viewed.has(file.path) && <Icon name="check" tone="done" />}
            <span class="cut" title={file.path}>
              {file.path}
            </span>
            {comments > 0 && <span class="count tone-need tint-need">{comments}</span>}
            <Counts {...file} />
          </button>
        );
      })}
    </nav>
  );
};
