/** A code block of Markdown whose fence is longer than any in the text. */
export const fencedBlock = (text: string, kind: 'diff' | 'text'): string => {
  let longest = 2;
  for (const [ticks] of text.matchAll(/`+/g)) longest = Math.max(longest, ticks.length);
  const fence = '`'.repeat(longest + 1);
  return `${fence}${kind}\n${text}\n${fence}`;
};
