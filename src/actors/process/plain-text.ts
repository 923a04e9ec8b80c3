import { stripVTControlCharacters } from 'node:util';

/**
 * Without colours and other codes for terminals. Error texts of assistants and commands pass here
 * before anybody reads them; the output of a tool stays as it is.
 */
export const plainText = (text: string): string => stripVTControlCharacters(text);
