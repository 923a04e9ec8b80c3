import type { Signal } from '@preact/signals';
import type { ChangedFile } from '../../model/diff.ts';

/** More files are on further pages, so that the document stays small. */
export const filesAtOnce = 50;
/** A longer file is folded. */
const linesAtMost = 500;
/** Of a page. The files after that many lines are folded. */
const linesInAll = 2_000;

export interface ReadFile {
  readonly file: ChangedFile;
  readonly isFolded: boolean;
}

/** The index of the first file of the page that has the file `at`. */
export const firstOfPage = (total: number, at: number): number =>
  at < total ? at - (at % filesAtOnce) : 0;

/** The files of a page, by path. */
export const foldLong = (files: readonly ChangedFile[]): ReadonlyMap<string, ReadFile> => {
  let lines = 0;
  return new Map(
    files.map((file) => {
      const { size, path } = file;
      const isFolded = size > linesAtMost || lines + size > linesInAll;
      if (!isFolded) lines += size;
      return [path, { file, isFolded }];
    }),
  );
};

export const FilePages = ({
  total,
  from,
  first,
}: {
  total: number;
  from: number;
  first: Signal<number>;
}) => {
  const step = (name: string, to: number) => (
    <button
      type="button"
      class="link"
      disabled={to < 0 || to >= total}
      onClick={() => {
        first.value = to;
      }}
    >
      {name}
    </button>
  );
  return total <= filesAtOnce ? null : (
    <p class="small">
      {from + 1} to {Math.min(total, from + filesAtOnce)} of {total.toLocaleString('en')}{' '}
      {step('Earlier files', from - filesAtOnce)} {step('Later files', from + filesAtOnce)}
    </p>
  );
};
