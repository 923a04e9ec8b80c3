import { isAbsolute, relative, sep } from 'node:path';
import { errorSentence } from '../assistants/error-sentence.ts';
import type { AssistantEvent } from '../assistants/port.ts';
import type { EventType } from '../journal/event-types.ts';
import { createTextGatherer } from '../process/text-gatherer.ts';

/** The frames of a run, at most 4 MiB of them. */
export interface AssistantFrames {
  show(event: AssistantEvent): void;
  end(): void;
  /** Relative to the workspace root. */
  artifacts(): readonly string[];
}

export interface AssistantFramesOptions {
  readonly root: string;
  /** Call ids are unique within one round only. */
  readonly round: number;
  readonly emit: (type: EventType, data: unknown) => void;
  readonly now: () => number;
}

const maxTextLength = 2_000;
const maxEmittedLength = 4 * 1024 * 1024;
const frameOverhead = 64;
const maxArtifacts = 200;

/**
 * Passes on frames up to `maxEmittedLength`; a last log frame then says that the rest is left out.
 */
const boundedEmit = (emit: AssistantFramesOptions['emit']): AssistantFramesOptions['emit'] => {
  let left = maxEmittedLength;
  return (type, data) => {
    if (left <= 0) return;
    left -= frameOverhead + JSON.stringify(data).length;
    emit(type, data);
    if (left <= 0)
      emit('log', {
        level: 'warn',
        message: 'the assistant has written 4 MiB; further output is not streamed',
      });
  };
};

const pathInside = (root: string, path: string): string | null => {
  const inside = isAbsolute(path) ? relative(root, path) : path;
  return inside === '' || inside === '..' || inside.startsWith(`..${sep}`) ? null : inside;
};

export const createAssistantFrames = ({
  root,
  round,
  emit: pass,
  now,
}: AssistantFramesOptions): AssistantFrames => {
  const emit = boundedEmit(pass);
  const text = createTextGatherer((piece) => emit('text_delta', { text: piece }));
  const running = new Map<string, { readonly tool: string; readonly startedAt: number }>();
  const changed = new Set<string>();

  const show = (event: AssistantEvent): void => {
    if (event.type === 'text') text.add(event.text);
    else text.end();
    if (event.type === 'note')
      emit('log', { level: event.level, message: errorSentence(event.message) });
    if (event.type === 'session')
      emit('log', { level: 'info', message: `the session of the assistant is ${event.id}` });
    if (event.type === 'tool_started') {
      const { callId, tool, arguments: given } = event;
      running.set(callId, { tool, startedAt: now() });
      emit('tool_start', {
        call_id: `${round}:${callId}`,
        tool,
        arguments: given.slice(0, maxTextLength),
      });
    }
    if (event.type === 'tool_ended') {
      const { callId, ok, output } = event;
      const { tool, startedAt } = running.get(callId) ?? { tool: 'tool', startedAt: now() };
      running.delete(callId);
      const times = { duration_ms: now() - startedAt, output: output.slice(0, maxTextLength) };
      emit('tool_end', { call_id: `${round}:${callId}`, tool, ok, ...times });
    }
    if (event.type === 'changed' && changed.size < maxArtifacts) {
      const path = pathInside(root, event.path);
      if (path !== null) changed.add(path);
    }
  };

  return { show, end: text.end, artifacts: () => [...changed] };
};
