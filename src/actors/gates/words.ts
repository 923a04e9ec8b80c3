/** The words that results end with. */

const bare = (line: string): string =>
  line
    .replace(/[*_`>#]/g, ' ')
    .replace(/^\s*[-+]?\s*(?:verdict|recommendation|decision)\s*:/i, '')
    .replace(/[.!\s]+$/, '')
    .trim();

/** The last line that is one of the words and nothing else; `NOT APPROVED` is no `APPROVED`. */
const lastWord = (results: string, words: readonly string[]): string | null =>
  results
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
