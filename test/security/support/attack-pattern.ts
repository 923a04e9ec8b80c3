import { createContext, Script } from 'node:vm';
import { type AST, RegExpParser } from '@eslint-community/regexpp';

/** Characters of which hostile text is made; a pattern adds those that it names. */
const alphabet = [
  ...' \t\n\r\u00a0\u2028aAqQzZ_0159éß‘“–\u0301\u200b😀',
  ...'!"#$%&\'()*+,-./:;<=>?@[\\]^`{|}~\u0000',
];
/** A quantifier with a larger bound is as good as one without. */
const smallBound = 64;
const attackLength = 40_000;

type Source = AST.Element | AST.Alternative | AST.Pattern;

const parser = new RegExpParser({ ecmaVersion: 2025 });

const attemptMatches = (node: Source, flags: string, text: string): boolean => {
  try {
    return new RegExp(`^(?:${node.raw})$`, flags.replace(/[gym]/g, '')).test(text);
  } catch {
    return false;
  }
};

const charactersOf = (node: Source, flags: string): readonly string[] => [
  ...new Set(
    [...alphabet, ...node.raw].filter((character) => attemptMatches(node, flags, character)),
  ),
];

const setsIn = (node: Source | AST.Element, flags: string): (readonly string[])[] => {
  if ('alternatives' in node) return node.alternatives.flatMap((each) => setsIn(each, flags));
  if (node.type === 'Alternative') return node.elements.flatMap((each) => setsIn(each, flags));
  if (node.type === 'Quantifier') return setsIn(node.element, flags);
  return /^Character/.test(node.type) ? [charactersOf(node, flags)] : [];
};

/** One character for each combination of sets of the pattern: the others would do the same. */
const distinctCharacters = (pattern: AST.Pattern, flags: string): readonly string[] => {
  const sets = setsIn(pattern, flags);
  const byMembership = new Map(
    [...new Set(sets.flat())].map((each) => [sets.map((set) => set.includes(each)).join(), each]),
  );
  return [...byMembership.values()];
};

/** One text that the part matches; optional parts count when `isFull`. */
const sampleOf = (node: Source, flags: string, isFull: boolean): string => {
  switch (node.type) {
    case 'Pattern':
    case 'Group':
    case 'CapturingGroup': {
      const texts = node.alternatives.map((each) => sampleOf(each, flags, isFull));
      return (isFull ? texts.at(-1) : texts[0]) ?? '';
    }
    case 'Alternative':
      return node.elements.map((each) => sampleOf(each, flags, isFull)).join('');
    case 'Quantifier':
      return sampleOf(node.element, flags, isFull).repeat(
        Math.max(node.min, isFull && node.max > 0 ? 1 : 0),
      );
    case 'Character':
      return String.fromCodePoint(node.value);
    case 'CharacterSet':
    case 'CharacterClass':
      return charactersOf(node, flags)[0] ?? '';
    default:
      return '';
  }
};

interface Loop {
  readonly quantifier: AST.Quantifier;
  /** What stands before it within the pattern, in two lengths. */
  readonly before: readonly string[];
}

const loopsIn = (node: Source, flags: string, before: readonly [string, string]): Loop[] => {
  switch (node.type) {
    case 'Pattern':
    case 'Group':
    case 'CapturingGroup':
      return node.alternatives.flatMap((each) => loopsIn(each, flags, before));
    case 'Assertion':
      return 'alternatives' in node
        ? node.alternatives.flatMap((each) => loopsIn(each, flags, before))
        : [];
    case 'Alternative': {
      let [short, full] = before;
      return node.elements.flatMap((element) => {
        const found = loopsIn(element, flags, [short, full]);
        short += sampleOf(element, flags, false);
        full += sampleOf(element, flags, true);
        return found;
      });
    }
    case 'Quantifier': {
      const inner = loopsIn(node.element, flags, before);
      return node.max > smallBound ? [{ quantifier: node, before }, ...inner] : inner;
    }
    default:
      return [];
  }
};

const repeated = (text: string): string => text.repeat(Math.ceil(attackLength / text.length));

/** Texts that make the pattern begin, run on and fail as often as it can. */
function* attacksOn(pattern: AST.Pattern, flags: string): Generator<string> {
  const characters = distinctCharacters(pattern, flags);
  const loops = loopsIn(pattern, flags, ['', '']);
  const pumps = new Set(
    loops
      .flatMap(({ quantifier: { element } }) => [
        ...characters.filter((each) => attemptMatches(element, flags, each)),
        sampleOf(element, flags, false),
        sampleOf(element, flags, true),
      ])
      .filter((text) => text !== ''),
  );
  const starts = new Set(['', ...loops.flatMap(({ before }) => before)]);
  const ends = ['', '\u0000', '\u0000\n!', '\n!', ...characters];
  for (const start of starts) {
    if (start !== '') yield* [`${repeated(start)}\u0000`, `${repeated(`\r${start}`)}\u0000`];
    for (const pump of pumps) {
      for (const end of ends) yield start + repeated(pump) + end;
      yield `\u0000${start}${repeated(pump)}\u0000`;
      for (const between of ['', '\n', '\r', '\u0000'])
        yield `${repeated(`${between}${start}${pump}`)}\u0000`;
    }
  }
}

const context = createContext({});
const script = new Script('for (const text of texts) text.replace(pattern, "")');
/** A linear pattern takes about 1 ms, a quadratic one 300 and more. */
const patienceMs = [60, 120, 240];

const isSlow = (pattern: RegExp, texts: readonly string[], timeouts: readonly number[]): boolean =>
  timeouts.every((timeout) => {
    try {
      Object.assign(context, { pattern, texts });
      script.runInContext(context, { timeout });
      return false;
    } catch {
      return true;
    }
  });

/** @returns the beginning of a text on which the pattern takes more than linear time, or null */
export const attackPattern = (source: string, flags: string): string | null => {
  const parsed = parser.parsePattern(source, undefined, undefined, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  });
  const pattern = new RegExp(source, flags);
  const attacks = [...attacksOn(parsed, flags)];
  if (attacks.length === 0 || !isSlow(pattern, attacks, [5_000])) return null;
  const slow = attacks.find((text) => isSlow(pattern, [text], patienceMs));
  return slow === undefined ? null : JSON.stringify(slow.slice(0, 60));
};
