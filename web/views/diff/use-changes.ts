import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { call, isRecorded } from '../../data/source.ts';
import { putTask, type TaskView } from '../../data/tasks.ts';
import { type ChangedFile, filesIn } from '../../model/diff.ts';
import { filesAtOnce, firstOfPage, foldLong } from './file-pages.tsx';

/** A file of the changes; its lines may not be read yet. */
export interface ListedFile {
  readonly path: string;
  readonly renamed_from?: string;
}

export const isRead = (file: ListedFile): file is ChangedFile => 'hunks' in file;

interface Changes {
  readonly attempt: number;
  readonly patch: string;
  readonly guarded: readonly string[];
  readonly files?: readonly ListedFile[];
  /** Files that a recording leaves out. */
  readonly files_left_out?: number;
}

/** Above it, names are read first, then the lines of the page that is shown. */
const filesInOneCall = 300;

/** While somebody types, not each letter is asked for. */
const restsMs = 120;

/** The latest answer; `stamp`: when it changes, the same is asked again. */
const useCall = (
  params: object | null,
  stamp: string,
  restMs: number,
  fail: (message: string) => void,
): Changes | null => {
  const found = useSignal<Changes | null>(null);
  const asked = JSON.stringify(params);
  useEffect(() => {
    if (asked === 'null') return undefined;
    let isLatest = true;
    const ask = async (): Promise<void> => {
      const answer = await call<Changes>('diff', JSON.parse(asked));
      if (isLatest) found.value = answer;
    };
    const timer = setTimeout(() => ask().catch((error: Error) => fail(error.message)), restMs);
    return () => {
      isLatest = false;
      clearTimeout(timer);
    };
  }, [asked, stamp, restMs, fail, found]);
  return found.value;
};

const liveStatuses: ReadonlySet<string | undefined> = new Set(['queued', 'started']);

/** Asks how large the saved work is: the list of tasks does not say it. */
const useSize = (task: TaskView | undefined): boolean => {
  const isThere = isRecorded() || task?.work !== undefined || liveStatuses.has(task?.status);
  const isKnown = useSignal(isThere);
  const id = task?.task_id;
  useEffect(() => {
    if (isKnown.peek()) return;
    const know = (): void => {
      isKnown.value = true;
    };
    call<TaskView>('status', { task_id: id }).then(putTask).then(know, know);
  }, [id, isKnown]);
  return isKnown.value;
};

interface Wanted {
  readonly task: TaskView | undefined;
  readonly taskId: string;
  readonly words: string;
  /** The index of a file on the page that is shown. */
  readonly first: number;
  readonly fail: (message: string) => void;
}

/** The changes of the latest attempt, and those of the page that is shown; null: not read yet. */
export const useChanges = ({ task, taskId, words, first, fail }: Wanted) => {
  const isKnown = useSize(task);
  const files = useRef(0);
  // The next attempt has no work at first, and goes on from this one.
  files.current = task?.work?.files ?? files.current;
  const isLarge = !isRecorded() && files.current > filesInOneCall;
  // Another attempt has another diff, and one at work after each turn.
  const turns = task?.status === 'started' ? task.usage.turns : '';
  const stamp = `${task?.attempt} ${task?.status} ${turns}`;
  const asked = { task_id: taskId, ...(isLarge ? { part: { names: true } } : {}) };
  const changes = useCall(isKnown ? asked : null, stamp, 0, fail);
  const whole = useMemo(() => filesIn(changes?.patch ?? ''), [changes]);
  const names = changes?.files;
  const all: readonly ListedFile[] = names ?? whole;
  const wanted = words.trim().toLowerCase();
  const found = useMemo(
    () => all.filter(({ path }) => path.toLowerCase().includes(wanted)),
    [all, wanted],
  );
  const from = firstOfPage(found.length, first);
  const listed = found.slice(from, from + filesAtOnce);
  const paths = listed.flatMap(({ path, renamed_from: before }) =>
    before === undefined ? path : [path, before],
  );
  const isPart = names !== undefined && paths.length > 0;
  const part = useCall(isPart ? { task_id: taskId, part: { paths } } : null, stamp, restsMs, fail);
  const read = useMemo(() => filesIn(part?.patch ?? ''), [part]);
  const byPath = useMemo(
    () => foldLong(names === undefined ? listed.filter(isRead) : read),
    [names, found, read, from],
  );
  return { changes, all, found, from, listed, byPath };
};
