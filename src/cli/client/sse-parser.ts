export interface SseEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

const maxBufferedBytes = 8 * 1024 * 1024;

/** Ignores comments and unknown fields. @throws if one event is too large */
export const createSseParser = (): ((chunk: string) => readonly SseEvent[]) => {
  let buffer = '';
  return (chunk) => {
    buffer += chunk;
    const blocks = buffer.split('\n\n');
    buffer = blocks.pop() ?? '';
    if (buffer.length > maxBufferedBytes) throw new Error('a frame of the stream is too large');
    return blocks.flatMap((block) => {
      const lines = block.split('\n');
      const field = (name: string): readonly string[] =>
        lines
          .filter((line) => line.startsWith(`${name}: `))
          .map((line) => line.slice(name.length + 2));
      const data = field('data').join('\n');
      return data === ''
        ? []
        : [{ id: field('id')[0] ?? null, event: field('event')[0] ?? 'message', data }];
    });
  };
};
