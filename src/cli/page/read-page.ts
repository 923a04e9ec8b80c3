import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { PageFiles } from '../../http/page-files.ts';

const pageFolder = new URL('../../../dist/page/', import.meta.url);

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const assetsOf = (): readonly string[] => {
  try {
    return [
      'index.html',
      ...readdirSync(new URL('assets/', pageFolder)).map((name) => `assets/${name}`),
    ];
  } catch {
    return [];
  }
};

/** The built page; empty when it is not built. */
export const readPage = (): PageFiles =>
  new Map(
    assetsOf().map((name) => [
      name,
      {
        type: contentTypes[extname(name)] ?? 'application/octet-stream',
        body: readFileSync(new URL(name, pageFolder)),
      },
    ]),
  );
