import { workflowKey } from '../journal/replay-workflow.ts';
import { readEach } from '../journal/snapshots.ts';
import type { ActorReads, SavedActor } from '../store/port.ts';
import { savedState } from './live-workflows.ts';
import { badParam } from './start-input.ts';
import { type WorkflowLine, workflowLine } from './workflow-view.ts';

export interface WorkflowPageRequest {
  /** Counts workflows that are over; the first page has all the others, too. */
  readonly limit?: number;
  /** Id of the last workflow of the page before. */
  readonly cursor?: string;
}

export interface WorkflowLinePage {
  readonly workflows: readonly WorkflowLine[];
  readonly next_cursor?: string;
}

const endedAtOnce = 100;

/** @throws invalid_params when the cursor names none that is over */
const workflowAtCursor = async (
  store: Pick<ActorReads, 'actor'>,
  cursor: string,
): Promise<SavedActor> => {
  const saved = await store.actor(workflowKey(cursor));
  if (saved === null || saved.pending)
    throw badParam('cursor', 'names no workflow that is over; start again without it');
  return saved;
};

const savedLine = (saved: SavedActor) => {
  const state = savedState(saved);
  return { startedAt: state.context.startedAt, line: workflowLine(state) };
};
type Line = ReturnType<typeof savedLine>;
const newestFirst = (one: Line, other: Line): number => other.startedAt - one.startedAt;

/**
 * Those that are not over, the newest first, and a page of the others, the last to end first; without
 * those whose states this server cannot read.
 */
export const listWorkflows = async (
  store: Pick<ActorReads, 'actor' | 'openWorkflows' | 'endedWorkflows'>,
  { limit = endedAtOnce, cursor }: WorkflowPageRequest,
): Promise<WorkflowLinePage> => {
  const place = cursor === undefined ? undefined : await workflowAtCursor(store, cursor);
  const open = place === undefined ? await store.openWorkflows() : [];
  const found = await store.endedWorkflows(limit + 1, place);
  const ended = found.slice(0, limit);
  const last = ended.at(-1);
  return {
    workflows: [
      ...readEach(open, savedLine).toSorted(newestFirst),
      ...readEach(ended, savedLine),
    ].map(({ line }) => line),
    ...(found.length > limit && last !== undefined ? { next_cursor: last.taskId } : {}),
  };
};
