import type { Signal } from '@preact/signals';
import type { Frame } from './frame.ts';

export type Params = Readonly<Record<string, unknown>>;

export interface TaskHistory {
  readonly frames: Signal<readonly Frame[]>;
  /** Why older entries are missing, in one sentence; null: none are. */
  readonly missing: Signal<string | null>;
  readonly isRead: Signal<boolean>;
  close(): void;
}

/** Where the page reads: a server, or the recording in an exported file. */
export interface Source {
  /** @throws CallError */
  readonly call: (method: string, params: Params) => Promise<unknown>;
  /** The whole history of a task, then what happens. */
  readonly openHistory: (taskId: string) => TaskHistory;
  /** Nothing can be changed, and nothing changes. */
  readonly isRecorded: boolean;
}

let current: Source | null = null;

/** Called once, before anything is drawn. */
export const readFrom = (source: Source): void => {
  current = source;
};

const source = (): Source => {
  if (current === null) throw new Error('the page has no source');
  return current;
};

export const isRecorded = (): boolean => source().isRecorded;
export const openHistory = (taskId: string): TaskHistory => source().openHistory(taskId);
/** The result has the type of the method, docs/reference/http.md. @throws CallError */
export const call = async <Result>(method: string, params: Params = {}): Promise<Result> =>
  (await source().call(method, params)) as Result;
