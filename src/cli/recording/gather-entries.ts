import { z } from 'zod';
import {
  type Gap,
  isGap,
  type RecordedEntry,
  type RecordedItem,
  type Recording,
} from '../../actors/journal/recording.ts';
import { hashOfEntry } from '../../actors/store/hash-chain.ts';
import { chooseEntries, type EntryFacts, entryFactsOf } from './choose-entries.ts';

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
  ...{ why: 'removed', transitions: 0, bytes: 0, through_seq },
  entries: Math.max(0, task_seq - 1),
  hash: previous === '' ? null : previous,
});

export interface GatheredEntries {
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
