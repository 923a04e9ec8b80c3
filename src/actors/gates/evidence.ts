import type { WorkFiles } from '../workspace/port.ts';

/** The work and the words that a complete task of a step left. */
export interface StepEvidence {
  readonly step: string;
  readonly taskId: string;
  /** The summary of the agent; empty when there is none. */
  readonly results: string;
  /** Paths that the step must leave, with the words filled in. */
  readonly leaves: readonly string[];
  readonly files: WorkFiles;
  /** Commands of `verify` ran: only reports that they wrote count. */
  readonly isVerified: boolean;
  /** A report that a command of `verify` wrote; null when none did. */
  report(path: string): Promise<string | null>;
}

/** A verdict on one thing, with what was looked for, and where. */
export interface Judgement {
  readonly passed: boolean;
  readonly says: string;
}

export const pass = (says: string): Judgement => ({ passed: true, says });
export const fail = (says: string): Judgement => ({ passed: false, says });

const documentMaxBytes = 2 * 1024 * 1024;

/** A document among the files, or why there is none. */
export const readDocument = async (
  { files, taskId }: StepEvidence,
  path: string,
): Promise<{ readonly text: string } | Judgement> => {
  const text = await files.read(path, documentMaxBytes);
  if (text === null)
    return fail(`looked for ${path} in the work of ${taskId} and found no such file`);
  return text.trim() === '' ? fail(`${path} in the work of ${taskId} is empty`) : { text };
};
