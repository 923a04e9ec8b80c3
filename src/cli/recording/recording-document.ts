import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Recording } from '../../actors/journal/replay/recording.ts';
import type { Changes } from '../../actors/workspace/port.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { workspaceFor } from '../config/workspace.ts';
import { escapeControls, oneLine } from '../output/safe-text.ts';
import { askForWork } from '../work/work-commands.ts';

const opening = '<script type="application/json" id="recording">';
const closing = '</script>';

const unicodeEscape = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** JSON in which no text can end the script element, or be mistaken for a line's end. */
const embedded = (recording: Recording): string =>
  escapeControls(JSON.stringify(recording)).replace(/[<>&\u2028\u2029]/g, unicodeEscape);

const inHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);

const digestOf = (code: string): string =>
  `'sha256-${createHash('sha256').update(code).digest('base64')}'`;

/** Only our script and styles, and no request: the file may be opened by anybody, anywhere. */
const policyOf = ({ script, style }: RecordingPage): string =>
  [
    "default-src 'none'",
    `script-src ${digestOf(script)}`,
    `style-src ${digestOf(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

/** The exported file. Equal recordings give equal files. */
export const renderRecording = (recording: Recording, page: RecordingPage): string =>
  [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policyOf(page)}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${inHtml(oneLine(`${recording.task.task_id}: ${recording.task.title}`, 200))}</title>`,
    `<style>${page.style}</style>`,
    '</head>',
    '<body>',
    '<div id="page"></div>',
    '<noscript>This file needs JavaScript. It asks nothing of any server.</noscript>',
    `${opening}${embedded(recording)}${closing}`,
    `<script type="module">${page.script}</script>`,
    '</body>',
    '</html>',
  ].join('\n');

/** The JSON text in an exported file; null when there is none. */
export const recordingIn = (document: string): string | null => {
  const from = document.indexOf(opening);
  const to = document.indexOf(closing, from);
  return from === -1 || to === -1 ? null : document.slice(from + opening.length, to);
};

const patchBytesAtMost = 5 * 1024 * 1024;

/** Whole files from the beginning of a patch, as many as fit. */
export const fittingPatch = (patch: string, bytesAtMost = patchBytesAtMost) => {
  const files = patch.split(/^(?=diff --git )/m);
  let left = bytesAtMost;
  const fitting = files.filter((file) => {
    left -= Buffer.byteLength(file);
    return left >= 0;
  });
  return { patch: fitting.join(''), files_left_out: files.length - fitting.length };
};

export const asRecorded = ({ attempt, patch, guarded }: Changes): Recording['changes'] => ({
  attempt,
  guarded: [...guarded],
  ...fittingPatch(patch),
});

const readWorkspace = async (
  { project, env }: CommandContext,
  config: string | undefined,
  taskId: TaskId,
): Promise<Changes | null> => {
  const workspace = await workspaceFor(loadConfig({ config, project }, env), project, env);
  return workspace.diff(taskId, null);
};

/** The changes of the latest attempt; null when it has no branch of its own. */
export const recordedChanges = async (
  context: CommandContext,
  client: Client,
  config: string | undefined,
  taskId: TaskId,
): Promise<Recording['changes']> => {
  try {
    const found = client.live
      ? await askForWork(client, taskId)
      : await readWorkspace(context, config, taskId);
    if (found === null) return null;
    return asRecorded(found);
  } catch (error) {
    context.io.err(`note: the file is without the changes of the task: ${messageOf(error)}`);
    return null;
  }
};

const folder = new URL('../../../dist/recording/', import.meta.url);

/** The program of an exported file. */
interface RecordingPage {
  readonly script: string;
  readonly style: string;
  /** SHA-256 (hex) of both. */
  readonly digest: string;
}

export const readRecordingPage = (): RecordingPage => {
  const [script, style] = ['recording.js', 'recording.css'].map((name) =>
    readFileSync(new URL(name, folder), 'utf8'),
  ) as [string, string];
  const digest = createHash('sha256').update(`${script}\n${style}`).digest('hex');
  return { script, style, digest };
};
