import { z } from 'zod';
import {
  type Gap,
  isGap,
  type RecordedEntry,
  type RecordedItem,
  type Recording,
} from '../../actors/journal/recording.ts';
import { hashOfEntry } from '../../actors/store/hash-chain.ts';
import type { Client } from '../client/client.ts';
import { chooseEntries, type EntryFacts, factsOf } from './choose-entries.ts';

const pageSchema = z.looseObject({
  entries: z.array(z.looseObject({ seq: z.number() })),
  next_after: z.number().optional(),
  history_removed: z.looseObject({ through_seq: z.number() }).optional(),
});

interface Page {
  readonly entries: readonly RecordedEntry[];
  /** The last entry that the server removed. */
  readonly removed: number | null;
}

/** Small pages: an entry may hold the output of a command. */
const entriesPerPage = 200;

async function* pagesOf(client: Pick<Client, 'call'>, taskId: string): AsyncGenerator<Page> {
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page = { task_id: taskId, after_seq: after, limit: entriesPerPage, kept: true };
    const answer: unknown = await client.call('history', page);
    const { next_after, history_removed: removed } = pageSchema.parse(answer);
    const { entries } = answer as { readonly entries: readonly RecordedEntry[] };
    yield { entries, removed: removed?.through_seq ?? null };
    after = next_after;
  }
}

/** What the redactor of the server or this one puts in the place of a secret. */
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

export interface Gathered {
  readonly items: readonly RecordedItem[];
  readonly head: Recording['head'];
}

interface GatherOptions {
  readonly redact: (text: string) => string;
  readonly bytesAtMost: number;
}

/** The journal of a task. It is read twice: what fits is known after the first time. */
export const gatherEntries = async (
  client: Pick<Client, 'call'>,
  taskId: string,
  { redact, bytesAtMost }: GatherOptions,
): Promise<Gathered> => {
  const facts = new Map<number, EntryFacts>();
  for await (const { entries } of pagesOf(client, taskId))
    for (const entry of entries) facts.set(entry.seq, factsOf(entry, hidesSecret(entry, redact)));
  const chosen = chooseEntries([...facts.values()], bytesAtMost);
  const items: RecordedItem[] = [];
  for await (const { entries, removed } of pagesOf(client, taskId))
    for (const entry of entries) {
      const known = facts.get(entry.seq);
      // It was written since.
      if (known === undefined) continue;
      if (items.length === 0 && removed !== null) items.push(removedGap(removed, entry));
      if (chosen.has(entry.seq)) items.push(entry);
      else addGap(items, gapOf(known));
    }
  const last = [...facts.values()].at(-1);
  const head = last && { seq: last.seq, entries: last.number || facts.size, hash: last.hash };
  return { items, head: head ?? null };
};
