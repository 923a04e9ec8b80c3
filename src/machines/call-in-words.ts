import type { ShownCall } from './agent-context.ts';

/** Characters of the argument. */
const argumentAtMost = 200;

const argumentIn = (json: string): string => {
  try {
    const args: object = JSON.parse(json);
    const found: unknown = Object.values(args).find((each) => typeof each === 'string');
    return typeof found === 'string' ? found.slice(0, argumentAtMost) : '';
  } catch {
    return '';
  }
};

/** A tool and its first argument that is text: `bash npm test`. */
export const callInWords = (call: Pick<ShownCall, 'tool' | 'arguments'>): string =>
  `${call.tool} ${argumentIn(call.arguments)}`.trimEnd();
