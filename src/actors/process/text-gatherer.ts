import { stripVTControlCharacters } from 'node:util';

/**
 * Without colours and other codes for terminals. Error texts of assistants and commands pass here
 * before anybody reads them; the output of a tool stays as it is.
 */
export const plainText = (text: string): string => stripVTControlCharacters(text);

/** The text without escape sequences, controls and marks of direction, which hide what it says. */
export const readableText = (text: string): string =>
  stripVTControlCharacters(text.replaceAll('\r\n', '\n')).replace(
    /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    '',
  );

/** Joins small pieces of streamed text: one event per 50 ms or so. */
interface TextGatherer {
  add(delta: string): void;
  end(): void;
}

const flushMs = 50;
const flushLength = 2_048;

export const createTextGatherer = (emit: (text: string) => void): TextGatherer => {
  let gathered = '';
  let timer: NodeJS.Timeout | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered !== '') emit(gathered);
    gathered = '';
  };
  return {
    add: (delta) => {
      gathered += delta;
      if (gathered.length >= flushLength) flush();
      else timer ??= setTimeout(flush, flushMs);
    },
    end: flush,
  };
};
