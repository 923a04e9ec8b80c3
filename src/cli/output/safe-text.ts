import { stripVTControlCharacters } from 'node:util';

/** Bidirectional controls: marks, embeddings, overrides, isolates. */
const bidi = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
const unseen = new RegExp(`[^\\P{Cc}\\n\\t]|[${bidi}]`, 'gu');
const unseenInJson = new RegExp(`[\\u007f-\\u009f${bidi}]`, 'gu');

/** Removes terminal and bidirectional controls; keeps line feeds and tabs. */
export const stripControls = (text: string): string =>
  stripVTControlCharacters(text).replace(unseen, '');

/** Shows those characters as `<U+001B>`: a reviewer must see everything. */
export const showControls = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(
      unseen,
      (character) => `<U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`,
    );

/** Escapes those characters as \uXXXX. JSON itself escapes everything below U+0020. */
export const escapeControls = (json: string): string =>
  json.replace(
    unseenInJson,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

export const oneLine = (text: string, width = 100): string => {
  const line = stripControls(text).replace(/\s+/g, ' ').trim();
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
};

/** Cuts each word that nobody reads to its end, such as a file that was given as an argument. */
export const shortWords = (text: string, longest = 400): string =>
  text.replace(new RegExp(`(\\S{${longest}})\\S+`, 'g'), '$1…');
