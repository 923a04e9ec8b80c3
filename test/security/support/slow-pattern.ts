import { createContext, Script } from 'node:vm';
import { type AST, RegExpParser } from '@eslint-community/regexpp';
import { analyse } from 'scslre';

const attackLength = 200_000;

/** One text that the part matches. */
const sampleOf = (node: AST.Element | AST.Alternative): string => {
  if (node.type === 'Alternative') return node.elements.map(sampleOf).join('');
  if (node.type === 'Group' || node.type === 'CapturingGroup')
    return node.alternatives.map(sampleOf)[0] ?? '';
  if (node.type === 'Quantifier') return sampleOf(node.element).repeat(node.min);
  return node.type === 'Character' ? String.fromCodePoint(node.value) : '';
};

/** What stands before each loop of the part. */
const beginningsOf = ({ elements }: AST.Alternative, before = ''): readonly string[] =>
  elements.flatMap((element, at) => {
    const here = before + elements.slice(0, at).map(sampleOf).join('');
    if (element.type === 'Group' || element.type === 'CapturingGroup')
      return element.alternatives.flatMap((each) => beginningsOf(each, here));
    const isLoop = element.type === 'Quantifier' && element.max === Number.POSITIVE_INFINITY;
    return isLoop ? [here] : [];
  });

const context = createContext({});
const script = new Script('text.replace(pattern, "")');
/** A linear pattern takes about 5 ms, a quadratic one seconds. */
const patienceMs = [60, 120, 240];

const isSlowOn = (pattern: RegExp, text: string): boolean =>
  patienceMs.every((timeout) => {
    try {
      Object.assign(context, { pattern, text });
      script.runInContext(context, { timeout });
      return false;
    } catch {
      return true;
    }
  });

/**
 * Why a pattern can take more than linear time, or null. scslre finds loops that share characters,
 * but not a beginning that stands again within the loop after it: that is tried.
 */
export const slowPattern = (source: string, flags: string): string | null => {
  const [report] = analyse({ source, flags }).reports;
  if (report !== undefined)
    return `${report.type} at ${(report.type === 'Trade' ? report.startQuant : report.quant).raw}`;
  const { alternatives } = new RegExpParser().parsePattern(source, undefined, undefined, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  });
  const pattern = new RegExp(source, flags);
  const slow = alternatives
    .flatMap((each) => beginningsOf(each))
    .filter((text) => text !== '')
    .flatMap((text) => [text, `\r${text}`])
    .map((text) => `${text.repeat(attackLength / text.length)}\u0000`)
    .find((text) => isSlowOn(pattern, text));
  return slow === undefined ? null : JSON.stringify(slow.slice(0, 60));
};
