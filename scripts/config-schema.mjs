// Writes configs/agent-server.schema.json from the zod schema; with --check, fails when the file has drifted.
import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { configSchema } from '../dist/cli/config-schema.js';

const path = new URL('../configs/agent-server.schema.json', import.meta.url);
const text = `${JSON.stringify(z.toJSONSchema(configSchema, { io: 'input' }), null, 2)}\n`;
if (process.argv.includes('--check')) {
  let found = '';
  try {
    found = readFileSync(path, 'utf8');
  } catch {}
  if (found !== text) {
    console.error('configs/agent-server.schema.json has drifted from src/cli/config-schema.ts; run: npm run docs');
    process.exit(1);
  }
} else writeFileSync(path, text);
