import { joined, type Styled, styled, type Text, terminalText } from './styled.ts';

/** Breaks text between words. A word that is wider, such as a path, has its line for itself. */
export const wrap = (text: string, room: number): readonly string[] => {
  const lines: string[] = [];
  let used = 0;
  for (const word of text.split(' ')) {
    const own = textWidth(word);
    const last = lines.pop();
    const isNew = last === undefined || used + 1 + own > room;
    if (last !== undefined) lines.push(isNew ? last : `${last} ${word}`);
    if (isNew) lines.push(word);
    used = isNew ? own : used + 1 + own;
  }
  return lines;
};

/** A line that is wider than its room, such as a long command, begins at the left edge. */
export const indentBelow = (indent: string, line: string, room: number): string =>
  textWidth(line) > room ? '' : indent;

/** A setting with its value, a command with an id, such as `agent retry bd-a1b2 --async`, or what stands in quotes. */
const unbrokenText =
  /\bagent config set [\w.]+ '[^'\n]{1,70}'|\bagent [a-z]+(?: --?[\w-]+| [\w.]+-[\w.]+)+|(?<![\w'])'[^'\n]{1,70}'(?!\w)|`[^`\n]{1,70}`/g;
const joint = '\u0000';

/**
 * `text` after `start`, in lines that fit; the next ones begin below it. A path and a command stay
 * in one piece, to be copied. `width`: null where lines may be long.
 */
export const wrapAfter = (start: string, text: string, width: number | null): string => {
  if (width === null) return `${start}${text}`;
  const room = Math.max(20, width - textWidth(start));
  const whole = text
    .replaceAll(joint, ' ')
    .replace(unbrokenText, (words) => words.replaceAll(' ', joint));
  const indent = ' '.repeat(textWidth(start));
  const lines = whole.split('\n').flatMap((line) => wrap(line, room));
  const [first = '', ...more] = lines;
  const below = more.map((line) =>
    line === '' ? '\n' : `\n${indentBelow(indent, line, room)}${line}`,
  );
  return `${start}${first}${below.join('')}`.replaceAll(joint, ' ');
};

/**
 * Each line of a text that is wider than the terminal goes on in another one, as far from the left;
 * the others stay as they are.
 */
export const wrapLines = (text: string, width: number | null): string =>
  width === null
    ? text
    : text
        .split('\n')
        .map((line) => {
          if (textWidth(line) <= width) return line;
          const [start = ''] = /^ */.exec(line) ?? [];
          return wrapAfter(start, line.slice(start.length), width);
        })
        .join('\n');

type TextPart = string | Styled;

const withText = (part: TextPart, text: string): TextPart =>
  typeof part === 'string' ? text : styled(part.style, text);

/** A text in its lines, each with the styles that it has. */
export const linesOfText = (text: Text): readonly (readonly TextPart[])[] => {
  const lines: TextPart[][] = [[]];
  for (const part of typeof text === 'string' ? [text] : text) {
    const [first = '', ...more] = (typeof part === 'string' ? part : part.text).split('\n');
    lines.at(-1)?.push(withText(part, first));
    for (const line of more) lines.push([withText(part, line)]);
  }
  return lines;
};

/** `wrapLines` for one line that has styles. It puts line breaks into the place of spaces. */
export const wrapStyledLine = (line: readonly TextPart[], width: number): Text => {
  let rest = wrapLines(terminalText(line, false), width);
  const wrapped = line.map((part) => {
    const text = terminalText([part], false);
    let own = '';
    for (const character of text) {
      const [broken = ''] = rest.startsWith(character) ? [character] : (/^\n */.exec(rest) ?? []);
      own += broken;
      rest = rest.slice(broken.length);
    }
    return withText(part, own);
  });
  return joined(linesOfText(wrapped), '\n');
};

const wide =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;
const none = /[\p{Mn}\p{Me}\p{Cf}]/u;

const columnsOfCharacter = (character: string): number => {
  if (character <= '\u007e') return 1;
  if (none.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
};

/** Columns of a terminal that a text without control characters takes. */
export const textWidth = (text: string): number =>
  [...text].reduce((sum, character) => sum + columnsOfCharacter(character), 0);

/** Cuts a text to a number of columns, with `…` where something is left out. */
export const cutToWidth = (text: string, columns: number): string => {
  if (textWidth(text) <= columns) return text;
  let cut = '';
  let used = 1;
  for (const character of text) {
    used += columnsOfCharacter(character);
    if (used > columns) break;
    cut += character;
  }
  return columns < 1 ? '' : `${cut}…`;
};
