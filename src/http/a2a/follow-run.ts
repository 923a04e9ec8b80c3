import type { EntryReads } from '../../actors/store/port.ts';
import { followEntries } from '../streams/follow-entries.ts';
import { type Artifact, isTerminal, type StreamResponse } from './protocol.ts';
import type { ReadRun } from './read-run.ts';
import {
  artifactEvent,
  artifactsOf,
  statusEvent,
  taskObject,
  transcriptId,
} from './task-object.ts';

export interface FollowPorts {
  readonly store: Pick<EntryReads, 'subscribe'>;
  /** The changes of files of a run that is over, as an artifact. */
  readonly patchOf: (found: ReadRun) => Promise<readonly Artifact[]>;
}

/** Adds the changes of files once the run is over. */
export const artifactsWithPatch = async (
  { patchOf }: Pick<FollowPorts, 'patchOf'>,
  found: ReadRun,
): Promise<readonly Artifact[]> => [
  ...artifactsOf(found),
  ...(isTerminal(found.run.state) ? await patchOf(found) : []),
];

/** One event; `seq`: the entry that is told with it, null when more of it follows. */
export interface RunEvent {
  readonly event: StreamResponse;
  readonly seq: number | null;
}

async function* lastEvents(
  ports: FollowPorts,
  found: ReadRun,
  seq: number,
): AsyncGenerator<RunEvent> {
  for (const artifact of await artifactsWithPatch(ports, found))
    if (artifact.artifactId !== transcriptId)
      yield { event: artifactEvent(found, artifact, { lastChunk: true }), seq: null };
  yield { event: statusEvent(found), seq };
}

/**
 * Each change that a client can see, up to the end of the run. Every reader gets the same events in
 * the same order; what it costs grows with the new entries alone.
 */
export async function* eventsOf(
  ports: FollowPorts,
  found: ReadRun,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const { view, fold, run, asOf } = found;
  if (isTerminal(run.state)) return;
  let hasText = run.transcript !== '';
  for await (const entries of followEntries(ports.store, view.task_id, asOf, signal)) {
    let text = '';
    const textEvents = function* (): Generator<RunEvent> {
      if (text === '') return;
      const parts = [{ text, mediaType: 'text/plain' }];
      const event = artifactEvent(found, { artifactId: transcriptId, parts }, { append: hasText });
      yield { event, seq: null };
      hasText = true;
      text = '';
    };
    for (const entry of entries) {
      const change = fold.take(entry);
      if (fold.latest() !== run) return;
      if (change === null) continue;
      if (change.kind === 'text') {
        text += change.text;
        continue;
      }
      yield* textEvents();
      if (isTerminal(run.state)) {
        yield* lastEvents(ports, found, entry.seq);
        return;
      }
      yield { event: statusEvent(found), seq: entry.seq };
    }
    yield* textEvents();
  }
}

/** The task as it is, then its changes. */
export async function* followRun(
  ports: FollowPorts,
  found: ReadRun,
  signal: AbortSignal,
): AsyncGenerator<StreamResponse> {
  yield { task: taskObject(found, { artifacts: await artifactsWithPatch(ports, found) }) };
  for await (const { event } of eventsOf(ports, found, signal)) yield event;
}
