import { fail, type Judgement, pass, type StepEvidence } from './evidence.ts';

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
