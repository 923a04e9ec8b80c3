import { isJsonObject } from '../../machines/json.ts';
import type { McpCallResult } from './port.ts';

const contentSize = (data: unknown): string =>
  typeof data === 'string' ? `${Math.ceil((data.length * 3) / 4)} bytes` : 'no data';

/** One part of a result; a model gets no pictures and no sound. */
const partText = (part: unknown): string => {
  if (!isJsonObject(part)) return '';
  const { type, text, data, mimeType, uri, resource } = part;
  if (type === 'text') return typeof text === 'string' ? text : '';
  if (type === 'resource' && isJsonObject(resource)) {
    const { text: content, blob } = resource;
    if (typeof content === 'string') return content;
    return `[resource ${String(resource['uri'])}, ${contentSize(blob)}, is not shown]`;
  }
  if (type === 'resource_link') return `[resource ${String(uri)}]`;
  return `[${String(type)}, ${String(mimeType)}, ${contentSize(data)}, is not shown]`;
};

/** The result of `tools/call`, as a model reads it. */
export const resultText = (result: unknown): McpCallResult => {
  const { content, structuredContent, isError } = isJsonObject(result) ? result : {};
  const parts = Array.isArray(content) ? content.map(partText).filter((text) => text !== '') : [];
  const structured =
    parts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : '';
  return { ok: isError !== true, text: parts.join('\n') || structured || '(no output)' };
};
