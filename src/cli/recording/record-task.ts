import { basename } from 'node:path';
import { z } from 'zod';
import type { TaskService } from '../../actors/engine/service/task-service.ts';
import { sealOf } from '../../actors/journal/replay/prove-recording.ts';
import {
  type Gap,
  isGap,
  type RecordedEntry,
  type RecordedItem,
  type Recording,
  recordingFormat,
  recordingVersion,
} from '../../actors/journal/replay/recording.ts';
import { isTransition } from '../../actors/journal/replay/replay.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { hashOfEntry } from '../../actors/store/rows/stored-entry.ts';
import { isServiceError } from '../../machines/errors.ts';
import { version } from '../version.ts';
import { asRecorded, readRecordingPage, renderRecording } from './recording-document.ts';

/** Facts of an entry for the choice; a journal may be larger than the memory. */
interface EntryFacts {
  readonly seq: number;
  readonly bytes: number;
  readonly isSnapshot: boolean;
  readonly isTransition: boolean;
  /** A piece of what a model or a command wrote. */
  readonly isText: boolean;
  readonly base: number | null;
  readonly hasSecret: boolean;
  readonly hash: string | null;
  readonly number: number;
}

const entryFactsOf = (entry: RecordedEntry, hasSecret: boolean): EntryFacts => ({
  seq: entry.seq,
  bytes: Buffer.byteLength(JSON.stringify(entry)),
  isSnapshot: entry.type === 'snapshot',
  isTransition: isTransition(entry),
  isText: entry.type === 'tool_output' || entry.type === 'text_delta',
  base: entry.base,
  hasSecret,
  hash: entry.hash,
  number: entry.task_seq,
});

const sizeOf = (facts: readonly EntryFacts[]): number =>
  facts.reduce((sum, { bytes }) => sum + bytes, 0);

/** The newest entries of each rank that fit. */
const newestOf = (
  ranks: readonly (readonly EntryFacts[])[],
  bytesAtMost: number,
): Map<number, EntryFacts> => {
  const chosen = new Map<number, EntryFacts>();
  let left = bytesAtMost;
  for (const rank of ranks)
    for (const each of rank.toReversed().filter(({ seq }) => !chosen.has(seq))) {
      if (each.bytes > left) break;
      left -= each.bytes;
      chosen.set(each.seq, each);
    }
  return chosen;
};

/**
 * The entries that fit: all snapshots, by which the states can be replayed, then the newest others,
 * the texts of models and commands last. When the snapshots alone do not fit, the newest entries
 * with the snapshots that they refer to.
 */
const chooseEntries = (facts: readonly EntryFacts[], bytesAtMost: number): ReadonlySet<number> => {
  const shown = facts.filter(({ hasSecret }) => !hasSecret);
  const snapshots = shown.filter(({ isSnapshot }) => isSnapshot);
  const others = [shown.filter(({ isText }) => !isText), shown];
  const isFoldable = sizeOf(snapshots) <= bytesAtMost;
  const chosen = newestOf(isFoldable ? [snapshots, ...others] : [shown], bytesAtMost);
  const all = new Map(shown.map((each) => [each.seq, each]));
  for (const { seq, base } of [...chosen.values()].filter((each) => each.base !== null)) {
    const needed = all.get(base ?? 0);
    // Without one, the base holds a secret.
    if (needed === undefined) chosen.delete(seq);
    else chosen.set(needed.seq, needed);
  }
  return new Set(chosen.keys());
};

const entryPageSchema = z.looseObject({
  entries: z.array(z.looseObject({ seq: z.number() })),
  next_after: z.number().optional(),
  history_removed: z.looseObject({ through_seq: z.number() }).optional(),
});

const entriesPerPage = 1_000;

/** The method `history`. */
export type ReadHistory = (page: {
  readonly task_id: string;
  readonly after_seq: number;
  readonly limit: number;
  readonly kept: true;
}) => Promise<unknown>;

const readEntryPage = async (readHistory: ReadHistory, taskId: string, after: number) => {
  const page = { task_id: taskId, after_seq: after, limit: entriesPerPage, kept: true } as const;
  const answer = await readHistory(page);
  const { next_after, history_removed: removed } = entryPageSchema.parse(answer);
  const { entries } = answer as { readonly entries: readonly RecordedEntry[] };
  return { entries, next: next_after ?? null, removed: removed?.through_seq ?? null };
};

/** Text that a redactor puts in the place of a secret. */
const placeholder = '[secret]';

/**
 * True when it cannot be shown: it holds a secret that was none when it was written. A server
 * replaces it on the way, then the hash does not fit.
 */
const hidesSecret = (entry: RecordedEntry, redact: (text: string) => string): boolean => {
  const { task_id: taskId, task_seq: taskSeq, previous, hash, ...kept } = entry;
  const text = `${kept.data}${kept.cause ?? ''}`;
  if (redact(text) !== text) return true;
  if (hash === null || !text.includes(placeholder)) return false;
  return hashOfEntry(previous ?? '', { taskId, taskSeq, ...kept }) !== hash;
};

const gapOf = ({ seq, bytes, isTransition, hasSecret, hash }: EntryFacts): Gap => ({
  why: hasSecret ? 'secret' : 'size',
  entries: 1,
  transitions: isTransition ? 1 : 0,
  bytes,
  through_seq: seq,
  hash,
});

/** Neighbours that are left out for the same reason are one gap. */
const addGap = (items: RecordedItem[], gap: Gap): void => {
  const before = items.at(-1);
  if (before === undefined || !isGap(before) || before.why !== gap.why) {
    items.push(gap);
    return;
  }
  items[items.length - 1] = {
    ...gap,
    entries: before.entries + gap.entries,
    transitions: before.transitions + gap.transitions,
    bytes: before.bytes + gap.bytes,
  };
};

const removedGap = (through_seq: number, { previous, task_seq }: RecordedEntry): Gap => ({
  why: 'removed',
  transitions: 0,
  bytes: 0,
  through_seq,
  entries: Math.max(0, task_seq - 1),
  hash: previous === '' ? null : previous,
});

interface GatheredEntries {
  readonly items: readonly RecordedItem[];
  readonly head: Recording['head'];
}

interface GatherOptions {
  readonly redact: (text: string) => string;
  readonly bytesAtMost: number;
}

interface Facts {
  readonly all: readonly EntryFacts[];
  /** Entries that the server had removed before. */
  readonly removed: Gap | null;
}

const readFacts = async (
  readHistory: ReadHistory,
  taskId: string,
  redact: GatherOptions['redact'],
): Promise<Facts> => {
  const all: EntryFacts[] = [];
  let removed: Gap | null = null;
  for (let after: number | null = 0; after !== null; ) {
    const page = await readEntryPage(readHistory, taskId, after);
    const [first] = page.entries;
    if (after === 0 && page.removed !== null && first !== undefined)
      removed = removedGap(page.removed, first);
    for (const entry of page.entries) all.push(entryFactsOf(entry, hidesSecret(entry, redact)));
    after = page.next;
  }
  return { all, removed };
};

/**
 * The journal of a task. It is read twice, page by page: what fits is known after the first time,
 * and pages of which nothing fits are read once.
 */
export const gatherEntries = async (
  readHistory: ReadHistory,
  taskId: string,
  { redact, bytesAtMost }: GatherOptions,
): Promise<GatheredEntries> => {
  const { all, removed } = await readFacts(readHistory, taskId, redact);
  const chosen = chooseEntries(all, bytesAtMost);
  const items: RecordedItem[] = removed === null ? [] : [removed];
  let page = new Map<number, RecordedEntry>();
  for (const facts of all) {
    if (!chosen.has(facts.seq)) {
      addGap(items, gapOf(facts));
      continue;
    }
    if (!page.has(facts.seq)) {
      const { entries } = await readEntryPage(readHistory, taskId, facts.seq - 1);
      page = new Map(entries.map((entry) => [entry.seq, entry]));
    }
    const entry = page.get(facts.seq);
    // Its history was removed meanwhile.
    if (entry === undefined) addGap(items, gapOf(facts));
    else items.push(entry);
  }
  const last = all.at(-1);
  const head = last && { seq: last.seq, entries: last.number || all.length, hash: last.hash };
  return { items, head: head ?? null };
};

const entryBytesAtMost = 20 * 1024 * 1024;

interface RecordingParts {
  readonly task: TaskView;
  readonly changes: Recording['changes'];
  /** The name of the project's folder. */
  readonly project: string;
  readonly readHistory: ReadHistory;
  readonly redact: (text: string) => string;
}

/** A task with its journal and its changes, without secrets. */
export const recordTask = async ({
  task,
  changes,
  project,
  readHistory,
  redact,
}: RecordingParts): Promise<Recording> => {
  const redacted = <Value>(value: Value): Value =>
    JSON.parse(redact(JSON.stringify(value))) as Value;
  const { items, head } = await gatherEntries(readHistory, task.task_id, {
    redact,
    bytesAtMost: entryBytesAtMost,
  });
  const sealed = {
    format: recordingFormat,
    version: recordingVersion,
    made_at: new Date().toISOString(),
    made_by: version,
    page: readRecordingPage().digest,
    project,
    task: redacted(task),
    items,
    changes: redacted(changes),
    head,
  } as const;
  return { ...sealed, seal: sealOf(sealed) };
};

export const isWhole = ({ items, changes }: Recording): boolean =>
  !items.some(isGap) && (changes?.files_left_out ?? 0) === 0;

type ExportSource = Pick<TaskService, 'status' | 'history' | 'diff'>;

const changesOf = async (service: ExportSource, taskId: string): Promise<Recording['changes']> => {
  try {
    return asRecorded(await service.diff(taskId, null));
  } catch (error) {
    // Files that cannot be read now do not keep people from the journal.
    if (isServiceError(error)) return null;
    throw error;
  }
};

/** Makes the file of `agent export` in the server. @throws task_not_found */
export const exportFromServer =
  (service: ExportSource, projectRoot: string, redact: (text: string) => string) =>
  async (taskId: string): Promise<string> => {
    const task = await service.status(taskId);
    const recording = await recordTask({
      task,
      changes: await changesOf(service, task.task_id),
      project: basename(projectRoot),
      readHistory: ({ task_id, after_seq, limit, kept }) =>
        service.history({ taskId: task_id, after: after_seq, limit, kept }),
      redact,
    });
    return `${renderRecording(recording, readRecordingPage())}\n`;
  };
