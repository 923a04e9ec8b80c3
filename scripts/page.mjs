// Builds the web page, as files of dist/page.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('../', import.meta.url));

/** @returns the files, and the modules that they are made of */
export const buildPage = async () => {
  const { output } = await build({
    root: join(root, 'web'),
    configFile: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      target: 'es2023',
      write: false,
      modulePreload: false,
      // The page allows no data: addresses.
      assetsInlineLimit: 0,
      emptyOutDir: false,
    },
  });
  return {
    files: output.map((file) => ({
      fileName: join('page', file.fileName),
      code: file.type === 'chunk' ? file.code : file.source,
    })),
    moduleIds: output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])),
  };
};
