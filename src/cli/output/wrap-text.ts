import { joined, type Styled, styled, type Text, terminalText } from './styled.ts';
import { wrapLines } from './wrap.ts';

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
