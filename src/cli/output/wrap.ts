import { cutToWidth, textWidth } from './width.ts';

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

/** A long word goes on in the next line. */
const cutWord = (word: string, width: number): readonly string[] => {
  if (textWidth(word) <= width) return [word];
  const first = cutToWidth(word, width).slice(0, -1);
  return first === '' ? [word] : [first, ...cutWord(word.slice(first.length), width)];
};

/**
 * `text` after `start`, in lines that fit; the next ones begin below it. `width`: null where lines
 * may be long.
 */
export const wrapAfter = (start: string, text: string, width: number | null): string => {
  if (width === null) return `${start}${text}`;
  const room = Math.max(20, width - textWidth(start));
  const words = text.split(' ').flatMap((word) => cutWord(word, room));
  const indent = ' '.repeat(textWidth(start));
  return `${start}${wrap(words.join(' '), room).join(`\n${indent}`)}`;
};
