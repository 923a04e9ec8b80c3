/** A frame of the stream or an entry of a history, docs/reference/events.md. */
export interface Frame {
  readonly type: string;
  readonly task_id: string;
  readonly attempt: number;
  readonly seq: number;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
export const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);
