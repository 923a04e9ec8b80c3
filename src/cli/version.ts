import { readFileSync } from 'node:fs';
import { textIn } from '../machines/json.ts';

const manifest: unknown = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

export const serverName = textIn(manifest, 'name') ?? '';
export const version = textIn(manifest, 'version') ?? '';
