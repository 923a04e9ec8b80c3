import { createHash } from 'node:crypto';
import type { Recording } from '../../actors/journal/replay/recording.ts';
import { escapeControls, oneLine } from '../output/safe-text.ts';
import type { RecordingPage } from './recording-page.ts';

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
