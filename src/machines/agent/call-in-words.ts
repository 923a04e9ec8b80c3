import type { ShownCall } from './agent-context.ts';

const argumentIn = (json: string): string => {
  try {
    const args: object = JSON.parse(json);
    const found: unknown = Object.values(args).find((each) => typeof each === 'string');
    return typeof found === 'string' ? found : '';
  } catch {
    return '';
  }
};

/** A tool and its first argument that is text, uncut: a part of a secret would not be replaced. */
export const callInWords = (call: Pick<ShownCall, 'tool' | 'arguments'>): string =>
  `${call.tool} ${argumentIn(call.arguments)}`.trimEnd();
