import { isJsonObject, type JsonObject } from '../../machines/json.ts';

interface XmlTag {
  readonly name: string;
  readonly kind: 'open' | 'close' | 'empty';
  readonly attributes: Readonly<Record<string, string>>;
}

/** The text is not a report that we can read. The message follows the name of the file. */
export class UnreadableReport extends Error {
  override readonly name = 'UnreadableReport';
}

const attribute = /([\w:.-]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;

const attributesIn = (text: string): Readonly<Record<string, string>> => {
  const found: Record<string, string> = Object.create(null);
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at] ?? '')) {
      at += 1;
      continue;
    }
    attribute.lastIndex = at;
    const [whole, name = '', double, single] = attribute.exec(text) ?? [];
    if (whole === undefined) throw new UnreadableReport('is broken XML: an attribute has no value');
    found[name] = double ?? single ?? '';
    at += whole.length;
  }
  return found;
};

/** The index of the first `>` outside quotes, which ends a tag. */
const endOfTag = (text: string, from: number): number => {
  let quote = '';
  for (let at = from; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === '"' || character === "'") quote = character;
    else if (character === '>') return at;
  }
  throw new UnreadableReport('is broken XML: it ends within a tag');
};

const skipPast = (text: string, from: number, end: string): number => {
  const at = text.indexOf(end, from);
  if (at < 0) throw new UnreadableReport(`is broken XML: ${JSON.stringify(end)} is missing`);
  return at + end.length;
};

const tagFrom = (text: string): XmlTag => {
  const isClose = text.startsWith('/');
  const isEmpty = text.endsWith('/');
  const inner = text.slice(isClose ? 1 : 0, isEmpty ? -1 : undefined);
  const name = /^[\w:.-]+/.exec(inner)?.[0];
  if (name === undefined) throw new UnreadableReport('is broken XML: a tag has no name');
  return {
    name,
    kind: isClose ? 'close' : isEmpty ? 'empty' : 'open',
    attributes: isClose ? {} : attributesIn(inner.slice(name.length)),
  };
};

/**
 * The tags of a document in order, in linear time. Document types and entities are refused: a report
 * has none, and an entity can expand to any size.
 * @throws UnreadableReport
 */
export function* xmlTags(text: string): Generator<XmlTag> {
  const open: string[] = [];
  for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at)) {
    if (text.startsWith('<!--', at)) at = skipPast(text, at, '-->');
    else if (text.startsWith('<![CDATA[', at)) at = skipPast(text, at, ']]>');
    else if (text.startsWith('<?', at)) at = skipPast(text, at, '?>');
    else if (
      /^<!DOCTYPE\s+coverage\s+SYSTEM\s+["'][^"'<>[]*["']\s*>/.test(text.slice(at, at + 300))
    )
      at = skipPast(text, at, '>');
    else if (text.startsWith('<!', at))
      throw new UnreadableReport(
        'declares a document type or entities, which a report must not have',
      );
    else {
      const end = endOfTag(text, at);
      const tag = tagFrom(text.slice(at + 1, end));
      if (tag.kind === 'open') open.push(tag.name);
      if (tag.kind === 'close' && open.pop() !== tag.name)
        throw new UnreadableReport(`is broken XML: </${tag.name}> closes nothing`);
      yield tag;
      at = end + 1;
    }
  }
  if (open.length > 0) throw new UnreadableReport(`is broken XML: <${open.at(-1)}> is not closed`);
}

/** Larger reports are refused. */
export const reportMaxBytes = 16 * 1024 * 1024;

/** @throws UnreadableReport */
export const requireReadable = (text: string): string => {
  if (Buffer.byteLength(text) > reportMaxBytes)
    throw new UnreadableReport(`has more than ${reportMaxBytes / 1024 ** 2} MB`);
  if (text.trim() === '') throw new UnreadableReport('is empty');
  return text.replace(/^\uFEFF/, '');
};

/** @throws UnreadableReport */
export const parseReportJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableReport('is broken JSON');
  }
};

export const asObject = (value: unknown): JsonObject | null => (isJsonObject(value) ? value : null);

/** A whole number from 0 on. @throws UnreadableReport */
export const countOf = (value: unknown, name: string): number => {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number;
  throw new UnreadableReport(`has no count in ${name}`);
};
