/** Joins the parts that are not empty. The separator is a space unless given. */
export const join = (parts, separator = ' ') => parts.filter((part) => part !== '').join(separator);

/** Cuts a text to at most `length` characters; where something is cut off it ends with the mark. */
export const truncate = (text, length, mark = '...') =>
  text.length <= length ? text : `${text.slice(0, Math.max(0, length - mark.length))}${mark}`.slice(0, length);

/** How often a word is in a text, whatever its case; whole words only. */
export const countWord = (text, word) =>
  text.toLowerCase().split(/\W+/).filter((each) => each === word.toLowerCase()).length;
