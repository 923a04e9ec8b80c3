import type { SharedStore } from '../../actors/engine/lease.ts';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import { type Project, readTrimmedOrNull, stateFiles } from '../config/project.ts';

/** The project's lock is held, so the starts in its state folder are over. */
export const sharedStoreOf = ({ stateDir }: Project): SharedStore => {
  const { nodes } = stateFiles(stateDir);
  return {
    former: (readTrimmedOrNull(nodes) ?? '').split('\n').filter((line) => line !== ''),
    keep: async (starts) => {
      await writeFileAtomically(nodes, `${starts.join('\n')}\n`);
    },
  };
};
