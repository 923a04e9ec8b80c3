import type { Signal } from '@preact/signals';
import type { ChangedFile } from '../../model/diff.ts';

/** More files are on further pages, so that the document stays small. */
export const filesAtOnce = 50;
/** A longer file is folded. */
const linesAtMost = 500;
/** Of a page. The files after that many lines are folded. */
const linesInAll = 2_000;

export interface FilePage {
  readonly from: number;
  readonly files: readonly { readonly file: ChangedFile; readonly isFolded: boolean }[];
}

/** `first`: the index of a file on the page. */
export const pageOf = (all: readonly ChangedFile[], first: number): FilePage => {
  const from = first < all.length ? first - (first % filesAtOnce) : 0;
  let lines = 0;
  const files = all.slice(from, from + filesAtOnce).map((file) => {
    const { size } = file;
    const isFolded = size > linesAtMost || lines + size > linesInAll;
    if (!isFolded) lines += size;
    return { file, isFolded };
  });
  return { from, files };
};

export const FilePages = ({
  total,
  page: { from, files },
  first,
}: {
  total: number;
  page: FilePage;
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
      {from + 1} to {from + files.length} of {total.toLocaleString('en')}{' '}
      {step('Earlier files', from - filesAtOnce)} {step('Later files', from + filesAtOnce)}
    </p>
  );
};
