import { createHash } from 'node:crypto';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const prefix = 'open-';

/** The server finds it by the code, which its name does not show. */
const redirectFile = (stateDir: string, code: string): string => {
  const name = createHash('sha256').update(code).digest('hex').slice(0, 16);
  return join(stateDir, `${prefix}${name}.html`);
};

const asText = (address: string): string =>
  address.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

/**
 * A page that only this user can read and that leads to the address. Every user of the machine can
 * read the arguments of a browser: they get the address of this page instead. @returns it
 */
export const writeRedirect = (stateDir: string, code: string, address: string): string => {
  const file = redirectFile(stateDir, code);
  const text = asText(address);
  const page = `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url=${text}">
<title>agent</title>
<a href="${text}">Open the page</a>
`;
  writeFileSync(file, page, { flag: 'wx', mode: 0o600 });
  return pathToFileURL(file).href;
};

export const removeRedirect = (stateDir: string, code: string): void =>
  rmSync(redirectFile(stateDir, code), { force: true });

/** What an earlier server left. */
export const removeRedirects = (stateDir: string): void => {
  for (const name of readdirSync(stateDir))
    if (name.startsWith(prefix) && name.endsWith('.html'))
      rmSync(join(stateDir, name), { force: true });
};
