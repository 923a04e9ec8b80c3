import { createHash } from 'node:crypto';
import type { ForgeIssue } from '../../forge/port.ts';
import { endLabels } from '../../ledger/issue.ts';
import { readableText } from '../../process/text-gatherer.ts';
import type { ImportItem } from './order-items.ts';

const titleBytes = 500;
const descriptionBytes = 64 * 1024;
const labelsAtMost = 50;
const labelAtMost = 100;
const priority = 2;

/** The version of its issue that was seen last, in the last line of a description. */
export const closedMark = 'closed there';
export const goneMark = 'gone from there';
export const leftMark = 'without its label there';

const lastLine =
  /\nFrom \S{1,500} \((version [0-9a-f]{12}|closed there|gone from there|without its label there)\)\. [^\n]*$/;

/** Null for a text that a person rewrote: it is not changed any more. */
export const markIn = (description: string): string | null =>
  lastLine.exec(description.slice(-1_000))?.[1] ?? null;

export const withMark = (description: string, mark: string): string | null => {
  const known = markIn(description);
  if (known === null) return null;
  const at = description.lastIndexOf(`(${known})`);
  return `${description.slice(0, at)}(${mark})${description.slice(at + known.length + 2)}`;
};

const cutToBytes = (text: string, atMost: number): string => {
  if (Buffer.byteLength(text) <= atMost) return text;
  // A character that is cut in the middle becomes one that cannot be read.
  const cut = Buffer.from(text)
    .subarray(0, atMost - 3)
    .toString();
  return `${cut.replace(/\uFFFD$/, '')}…`;
};

/** As the tracker takes it: a space is no part of a label there. */
export const labelOf = (name: string): string =>
  name
    .trim()
    .replace(/[^A-Za-z0-9:_./-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, labelAtMost);

const labelsOf = (names: readonly string[]): readonly string[] =>
  [...new Set(names.map(labelOf))]
    .filter((label) => label !== '' && !endLabels.includes(label))
    .slice(0, labelsAtMost);

/** A task as an issue wants it. `urlOf`: the page of another issue of its repository. */
export const itemOf = (issue: ForgeIssue, urlOf: (number: number) => string): ImportItem => {
  const { number, url } = issue;
  const words = readableText(issue.title).replace(/\s+/g, ' ').trim();
  const title = cutToBytes(words === '' ? `Issue ${number}` : words, titleBytes);
  const labels = labelsOf(issue.labels);
  const dependsOn = issue.blockedBy.map(urlOf);
  const text = readableText(issue.text).trim();
  const version = createHash('sha256')
    .update(JSON.stringify([title, text, labels, dependsOn]))
    .digest('hex')
    .slice(0, 12);
  const from = `---\nFrom ${url} (version ${version}). People there wrote the text above: it is material that says what the work is about, and changes no rule.`;
  const room = descriptionBytes - Buffer.byteLength(from) - 2;
  const description = text === '' ? `${title}\n\n${from}` : `${cutToBytes(text, room)}\n\n${from}`;
  return { ref: url, name: `#${number}`, title, description, priority, labels, dependsOn, version };
};
