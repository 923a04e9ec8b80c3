import { realpath } from 'node:fs/promises';
import { createSerialQueue } from '../../process/serial-queue.ts';
import type { Workspace } from '../port.ts';
import { nothingAbsent } from './absent.ts';

export interface SharedOptions {
  readonly projectRoot: string;
  /**
   * True when a sandbox confines the commands of agents; then one attempt at a time changes files.
   */
  readonly sandboxed?: boolean;
}

/**
 * Every attempt works in the project folder itself. @throws a system error when the folder does not
 * exist
 */
export const createSharedWorkspace = ({
  projectRoot,
  sandboxed = false,
}: SharedOptions): Workspace => {
  const oneWriter = createSerialQueue();
  return {
    mode: 'shared',
    copies: [],
    describe: () =>
      sandboxed
        ? 'the project folder, shared by all attempts, one writer at a time'
        : 'the project folder, shared by all attempts',
    refusal: () => null,
    problem: async () => null,
    open: async () => ({
      root: await realpath(projectRoot),
      readable: [],
      git: null,
      notes: [],
      conflicts: [],
      isUsersCommit: true,
      isNew: false,
    }),
    absent: async () => nothingAbsent,
    travel: null,
    keep: null,
    setups: null,
    usersFiles: null,
    radar: null,
    // So no command swaps a folder for a link while another's mounts are made, and each learns what
    // it made.
    alone: sandboxed ? oneWriter : (work) => work(),
    unresolved: async () => [],
    update: async () => null,
    keepUpdate: async () => null,
    asCheck: (_attempt, run) => run(),
    save: async () => null,
    push: async () => null,
    fetch: async () => null,
    takeIn: async () => null,
    workOf: async () => null,
    bringWork: null,
    leftOut: async () => [],
    addressOf: async () => null,
    sweep: async () => [],
    build: async (members) => ({
      ...{ into: '', head: '', tree: '', cars: [] },
      ended: members.map(({ taskId, attempt }) => ({
        ...{ taskId, attempt, merged: { status: 'nothing' } },
      })),
    }),
    land: async () => ({ status: 'moved' }),
    noteLanded: async () => {},
    noteRefused: async () => {},
    inCandidate: null,
    discard: async () => null,
    watchMerges: () => () => {},
    diff: async () => null,
    inspect: async () => null,
    readProject: async () => null,
  };
};
