import type { CommitAnswer } from '../store/port.ts';

export interface Reply {
  resolve(answer: CommitAnswer): void;
  reject(error: unknown): void;
  /** The reply if it is known by now, else a promise of it. */
  read(): CommitAnswer | Promise<CommitAnswer>;
}

export const createReply = (): Reply => {
  let settle: {
    readonly resolve: (answer: CommitAnswer) => void;
    readonly reject: (error: unknown) => void;
  } | null = null;
  let known: (() => CommitAnswer) | null = null;
  return {
    resolve: (answer) => {
      known = () => answer;
      settle?.resolve(answer);
    },
    reject: (error) => {
      known = () => {
        throw error;
      };
      settle?.reject(error);
    },
    read: () =>
      known?.() ??
      new Promise((resolve, reject) => {
        settle = { resolve, reject };
      }),
  };
};
