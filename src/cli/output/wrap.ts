import { textWidth } from './width.ts';

/** Breaks text between words. */
export const wrap = (text: string, width: number): readonly string[] => {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || textWidth(last) + 1 + textWidth(word) > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
};

/** A command with an id, such as `agent retry bd-a1b2 --async`. */
const command = /\bagent [a-z]+(?: --[\w-]+| [\w.]+-[\w.]+)+/g;
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
    .replace(command, (words) => words.replaceAll(' ', joint));
  const indent = ' '.repeat(textWidth(start));
  return `${start}${wrap(whole, room).join(`\n${indent}`).replaceAll(joint, ' ')}`;
};
