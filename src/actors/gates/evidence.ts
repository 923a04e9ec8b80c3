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

/** The words stand at the end of results: what comes before (characters) is not looked at. */
const readLength = 100_000;

const bare = (line: string): string =>
  line
    .replace(/[*_`>#]/g, ' ')
    .replace(/^\s*(?:[-+]\s*)?(?:verdict|recommendation|decision)\s*:/i, '')
    .replace(/(?<![.!\s])[.!\s]+$/, '')
    .trim();

/** The last line that is one of the words and nothing else; `NOT APPROVED` is no `APPROVED`. */
const lastWord = (results: string, words: readonly string[]): string | null =>
  results
    .slice(-readLength)
    .split(/\r?\n/)
    .map((line) => bare(line).replace(/[\s-]+/g, ' '))
    .findLast((line) => words.includes(line)) ?? null;

export const verdictOf = (results: string): 'APPROVED' | 'CHANGES REQUIRED' | null => {
  const word = lastWord(results, ['APPROVED', 'CHANGES REQUIRED']);
  return word === 'APPROVED' || word === 'CHANGES REQUIRED' ? word : null;
};

export const recommendationOf = (results: string): 'PURSUE' | 'DEFER' | 'DO NOT PURSUE' | null => {
  const word = lastWord(results, ['PURSUE', 'DEFER', 'DO NOT PURSUE']);
  return word === 'PURSUE' || word === 'DEFER' || word === 'DO NOT PURSUE' ? word : null;
};

export const checkVerdict = ({ results, taskId }: StepEvidence): Judgement => {
  const verdict = verdictOf(results);
  if (verdict === 'APPROVED') return pass(`${taskId} ends with APPROVED`);
  if (verdict === null)
    return fail(`the results of ${taskId} end with neither APPROVED nor CHANGES REQUIRED`);
  return fail(`${taskId} ends with CHANGES REQUIRED:\n${results.trim().slice(0, 8_000)}`);
};
