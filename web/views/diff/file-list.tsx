import type { Signal } from '@preact/signals';
import type { NewComment } from '../../data/actions.ts';
import type { ChangedFile } from '../../model/diff.ts';
import { numbered } from '../../model/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Counts } from './counts.tsx';
import { FilePages, filesAtOnce, type ReadFile } from './file-pages.tsx';
import { LayoutSwitch } from './layout.tsx';
import type { ListedFile } from './use-changes.ts';

interface FilesProps {
  readonly total: number;
  readonly sums: Pick<ChangedFile, 'added' | 'removed'>;
  /** Those with `words` in their path. */
  readonly found: number;
  readonly words: Signal<string>;
  readonly from: number;
  /** The files of the page. */
  readonly listed: readonly ListedFile[];
  /** Those of them whose lines have been read. */
  readonly byPath: ReadonlyMap<string, ReadFile>;
  readonly first: Signal<number>;
  readonly pending: readonly NewComment[];
  readonly viewed: ReadonlySet<string>;
}

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
export const Files = (props: FilesProps) => {
  const { total, sums, found, words, from, listed, byPath, first, pending, viewed } = props;
  return (
    <nav class="files" aria-label="Changed files">
      <p>
        <strong>{numbered(total, 'file')}</strong> <Counts {...sums} />{' '}
        <span class="quiet small">
          {viewed.size} of {total.toLocaleString('en')} viewed
        </span>
      </p>
      <LayoutSwitch />
      {total > filesAtOnce && <Find words={words} first={first} />}
      {found === 0 && <p class="small">No file has “{words.value}” in its name.</p>}
      <FilePages total={found} from={from} first={first} />
      {listed.map(({ path }, index) => {
        const file = byPath.get(path)?.file;
        const comments = pending.filter((each) => each.path === path).length;
        return (
          <button
            key={path}
            type="button"
            class="file-link"
            onClick={() => document.getElementById(`file-${index}`)?.scrollIntoView()}
          >
            {viewed.has(path) && <Icon name="check" tone="done" />}
            <span class="cut" title={path}>
              {path}
            </span>
            {comments > 0 && <span class="count tone-need tint-need">{comments}</span>}
            {file !== undefined && <Counts {...file} />}
          </button>
        );
      })}
    </nav>
  );
};
