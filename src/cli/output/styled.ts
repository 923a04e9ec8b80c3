import { stripControls } from './safe-text.ts';

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Style = keyof typeof codes;
export interface Styled {
  readonly style: Style;
  readonly text: string;
}
/** Text for people. Colour is beside the words, so that no words can bring any. */
export type Text = string | readonly (string | Styled)[];

export const styled = (style: Style, text: string): Styled => ({ style, text });

const partsOf = (text: Text): readonly (string | Styled)[] =>
  typeof text === 'string' ? [text] : text;

/** Puts several texts into one, with `between` from one to the next. */
export const joined = (texts: readonly Text[], between: string): Text =>
  texts.flatMap((text, at) => [...(at === 0 ? [] : [between]), ...partsOf(text)]);

/** The text for a terminal, without control characters but those of its own colours. */
export const terminalText = (text: Text, colour: boolean): string =>
  partsOf(text)
    .map((part) => {
      if (typeof part === 'string') return stripControls(part);
      const clean = stripControls(part.text);
      return colour && clean !== '' ? `\u001b[${codes[part.style]}m${clean}\u001b[0m` : clean;
    })
    .join('');

/**
 * Whether a stream takes colour: `NO_COLOR` and `CLICOLOR=0` say no, `CLICOLOR_FORCE` says yes,
 * else a terminal does.
 */
export const takesColour = (
  isTerminal: boolean,
  env: Readonly<Record<string, string | undefined>>,
): boolean => {
  if (env['NO_COLOR']) return false;
  if (env['CLICOLOR_FORCE'] && env['CLICOLOR_FORCE'] !== '0') return true;
  return isTerminal && env['CLICOLOR'] !== '0' && env['TERM'] !== 'dumb';
};
