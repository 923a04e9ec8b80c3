import { A2aError } from './errors.ts';
import type { GivenPart } from './schemas.ts';

export const inputModes = ['text/plain', 'text/markdown', 'application/json'];
export const outputModes = ['text/markdown', 'text/plain', 'text/x-diff', 'application/json'];

const isReadable = (mediaType: string): boolean =>
  /^(text\/[\w.+-]+|application\/json)(\s*;.*)?$/i.test(mediaType);

const fenced = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``;

/** A URL is for the agent to read: the server fetches nothing. */
const textOfPart = ({ text, raw, url, data, filename, mediaType }: GivenPart): string => {
  if (mediaType !== undefined && !isReadable(mediaType))
    throw new A2aError(
      'CONTENT_TYPE_NOT_SUPPORTED',
      `a part of the type ${JSON.stringify(mediaType)} cannot be read; send text or JSON`,
    );
  if (text !== undefined) return text;
  if (url !== undefined) return filename === undefined ? url : `${filename}: ${url}`;
  if (data !== undefined) return fenced('json', JSON.stringify(data, null, 2));
  if (mediaType === undefined)
    throw new A2aError(
      'CONTENT_TYPE_NOT_SUPPORTED',
      'a part with bytes needs a mediaType, text or JSON',
    );
  const content = fenced('', Buffer.from(raw ?? '', 'base64').toString('utf8'));
  return filename === undefined ? content : `${filename}:\n${content}`;
};

/** The text of a message, for an agent. @throws CONTENT_TYPE_NOT_SUPPORTED */
export const messageText = (parts: readonly GivenPart[]): string =>
  parts.map(textOfPart).join('\n\n').trim();
