export const plural = (count: number, noun: string, many = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : many}`;

/** The first names of many: `a, b and 7 more`. */
export const someOf = (names: readonly string[], atMost = 10): string => {
  const more = names.length - atMost;
  return `${names.slice(0, atMost).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
};
