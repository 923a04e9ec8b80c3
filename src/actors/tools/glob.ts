const maxAlternatives = 32;

/** Expands braces into plain globs: `*.{ts,tsx}` → `*.ts`, `*.tsx`. At most 32. */
export const expandBraces = (pattern: string): readonly string[] => {
  let patterns: readonly string[] = [pattern];
  for (;;) {
    const next = patterns.flatMap((one) => {
      const [whole, inside] = /\{([^{}]*)\}/.exec(one) ?? [];
      if (whole === undefined || inside === undefined) return [one];
      return inside.split(',').map((choice) => one.replace(whole, () => choice));
    });
    if (next.length === patterns.length && next.every((one, index) => one === patterns[index]))
      return patterns;
    patterns = next.slice(0, maxAlternatives);
  }
};

/** Expands each double star with a slash into no folder and into any folders. */
const expandStars = (pattern: string): readonly string[] => {
  const [first = '', ...rest] = pattern.split('**/');
  return rest
    .reduce<readonly string[]>(
      (heads, part) =>
        heads.flatMap((head) => [`${head}${part}`, `${head}*/${part}`]).slice(0, maxAlternatives),
      [first],
    )
    .map((one) => one.replaceAll('**', '*'));
};

/**
 * Tests of find(1), joined by -o. A pattern without a slash tests names, one with a slash paths
 * below `.`.
 */
export const findTests = (pattern: string): readonly string[] =>
  expandBraces(pattern.replace(/^(\.?\/)+/, ''))
    .flatMap((one) =>
      one.includes('/') ? expandStars(one).map((path) => ['-path', `./${path}`]) : [['-name', one]],
    )
    .flatMap((test, index) => (index === 0 ? test : ['-o', ...test]));
