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
