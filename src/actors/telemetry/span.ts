import { createHash } from 'node:crypto';

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: 'internal' | 'client';
  /** Epoch ms. */
  readonly startAt: number;
  readonly endAt: number;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  /** Why it failed, as one word; null when it did not. */
  readonly error: string | null;
}

const hex = (length: number, ...parts: readonly (string | number)[]): string =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, length);

/**
 * Ids follow from the task, so that a server that restarts goes on with the trace of an attempt.
 */
export interface TraceIds {
  readonly traceId: string;
  readonly rootId: string;
  idOf(part: string, seq: number): string;
}

/** `project` tells equal task ids of two projects apart. */
export const traceIds = (project: string, taskId: string, attempt: number): TraceIds => ({
  traceId: hex(32, project, taskId, attempt),
  rootId: hex(16, project, taskId, attempt, 'attempt'),
  idOf: (part, seq) => hex(16, project, taskId, attempt, part, seq),
});
