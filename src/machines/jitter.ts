/**
 * A pseudo-random number from 0 to below 1, the same for the same text, so that a replay repeats
 * it.
 */
export const jitter = (text: string): number => {
  let hash = 2_166_136_261;
  for (const character of text)
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619);
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32;
};
