import { isJsonObject, type JsonObject } from '../../machines/json.ts';
import { UnreadableReport } from './xml-tags.ts';

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
