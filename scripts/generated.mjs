import { readFileSync, writeFileSync } from 'node:fs';

/** Writes a generated file; with --check, fails when the existing file differs. */
export const generate = (path, text) => {
  const file = new URL(`../${path}`, import.meta.url);
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
    return;
  }
  let found = '';
  try {
    found = readFileSync(file, 'utf8');
  } catch {}
  if (found === text) return;
  console.error(`${path} has drifted from its source; run: npm run docs`);
  process.exit(1);
};
