import type { Common, Flag, Flags } from './command.ts';

export const commonFlags = {
  json: { type: 'switch', default: false, describe: 'Print JSON: one value, or one per line' },
  project: { type: 'text', value: 'folder', completes: 'folder', describe: 'Project folder' },
  config: {
    type: 'text',
    value: 'file',
    completes: 'file',
    describe: 'Configuration file',
  },
  start: { type: 'switch', default: true, describe: 'Refuse to start a server if none runs' },
  'token-file': {
    type: 'text',
    value: 'file',
    completes: 'file',
    describe: "Act with the token in a file, as with AGENT_TOKEN; default: the server's own",
  },
  pager: { type: 'switch', default: true, describe: 'Print long output without a pager' },
} as const satisfies Record<keyof Common, Flag>;

export const everywhere = {
  help: { type: 'switch', short: 'h', default: false, describe: 'Show help' },
  version: { type: 'switch', short: 'v', default: false, describe: 'Show the version' },
} as const satisfies Flags;

/** Columns by which a list of tasks is sorted. */
export const sortKeys = ['created', 'updated', 'priority', 'cost', 'status', 'title'] as const;
export const asyncFlag = {
  async: {
    type: 'switch',
    default: false,
    describe: 'Return at once; the work continues in the background',
  },
} as const satisfies Flags;
