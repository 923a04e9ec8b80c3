import { readFileSync } from 'node:fs';
import {
  type Recording,
  recordingFormat,
  recordingSchema,
  recordingVersion,
} from '../../actors/journal/recording.ts';
import { isJsonObject } from '../../machines/json.ts';
import { CallError } from '../client/client.ts';
import { fileProblem } from '../output/file-problem.ts';
import { UsageError } from '../words/usage-error.ts';
import { recordingIn } from './recording-document.ts';

/** Larger than any file that we write. */
const fileBytesAtMost = 100_000_000;

/** @throws UsageError when it cannot be read */
export const readRecordingFile = (file: string, name: string): string => {
  try {
    const bytes = readFileSync(file);
    if (bytes.length <= fileBytesAtMost) return bytes.toString();
  } catch (error) {
    throw new UsageError(`${name} cannot be read: ${fileProblem(error)}`);
  }
  throw new UsageError(`${name} is larger than any exported task`);
};

/** Null when it is no JSON, or nested too deeply to be written again. */
const writableJson = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text);
    JSON.stringify(value);
    return value;
  } catch {
    return null;
  }
};

const notARecording = (file: string, why: string): CallError =>
  new CallError('not_proven', `${file}: ${why}`, { file });

/** @throws CallError when the file holds no recording, or a damaged one */
export const recordingOf = (document: string, file: string): Recording => {
  const text = recordingIn(document);
  if (text === null)
    throw notARecording(file, 'it holds no task that agent export wrote, or its end is missing');
  const value = writableJson(text);
  if (
    isJsonObject(value) &&
    value['format'] === recordingFormat &&
    value['version'] !== recordingVersion
  )
    throw notARecording(file, `another version of agent wrote it (form ${value['version']})`);
  const { error } = recordingSchema.safeParse(value);
  const [issue] = error?.issues ?? [];
  if (issue !== undefined)
    throw notARecording(
      file,
      `it was changed, so it cannot be read (at ${issue.path.join('.') || 'its beginning'})`,
    );
  // The order of the fields counts, and the schema may change it.
  return value as Recording;
};
