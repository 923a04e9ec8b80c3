import { createSseParser } from '../../src/cli/client/sse-parser.ts';

export interface SeenFrame {
  readonly id: number | null;
  readonly event: string;
  readonly body: {
    readonly type: string;
    readonly task_id: string;
    readonly attempt: number;
    readonly seq?: number;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

/** Frames of a stream over a real socket, until its end or `enough`. */
export const readFrames = async (
  url: string,
  headers: Readonly<Record<string, string>>,
  enough: (frame: SeenFrame) => boolean = () => false,
): Promise<readonly SeenFrame[]> => {
  const response = await fetch(url, { headers });
  if (response.status !== 200 || response.body === null)
    throw new Error(`${response.status} ${await response.text()}`);
  const frames: SeenFrame[] = [];
  const parse = createSseParser();
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    for (const { id, event, data } of parse(decoder.decode(chunk, { stream: true }))) {
      const frame = { id: id === null ? null : Number(id), event, body: JSON.parse(data) };
      frames.push(frame);
      if (enough(frame)) return frames;
    }
  }
  return frames;
};
