/** A number from 0 to below 1 that looks random and is always the same for the same words: jitter that can be replayed. */
export const spread = (words: string): number => {
  let hash = 2_166_136_261;
  for (const character of words) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619);
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32;
};
