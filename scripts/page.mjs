// Builds the web page as files of dist/page, and the page of an exported task in dist/recording.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('../', import.meta.url));

const inject = { h: ['preact', 'h'], Fragment: ['preact', 'Fragment'] };

/** @returns the files, and the modules that they are made of */
const built = async (folder, more, place = { root: join(root, 'web') }) => {
  const { output } = await build({
    ...place,
    configFile: false,
    logLevel: 'warn',
    // Calls with the children as arguments are smaller than those with a list of them.
    oxc: { jsx: { runtime: 'classic', pragma: 'h', pragmaFrag: 'Fragment' } },
    build: {
      target: 'es2023',
      // Older ones would get each colour twice, for `light-dark()`.
      cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
      write: false,
      modulePreload: false,
      // The page allows no data: addresses.
      assetsInlineLimit: 0,
      emptyOutDir: false,
      rolldownOptions: { transform: { inject }, ...more },
    },
  });
  return {
    files: output.map((file) => ({
      fileName: join(folder, file.fileName),
      code: file.type === 'chunk' ? file.code : file.source,
    })),
    moduleIds: output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])),
  };
};

/** One script and one style sheet, which are written into each exported file. */
const recording = {
  input: join(root, 'web', 'recording', 'main.tsx'),
  output: { entryFileNames: 'recording.js', assetFileNames: 'recording[extname]' },
};

/** The front page of the hub, and what it adds to the pages of projects, under names of their own. */
const hub = {
  input: [join(root, 'web', 'hub', 'index.html'), join(root, 'web', 'hub', 'sign-in.ts')],
  preserveEntrySignatures: 'strict',
  output: {
    entryFileNames: ({ name }) => (name === 'sign-in' ? 'sign-in.js' : 'assets/[name]-[hash].js'),
  },
};

export const buildPage = async () => {
  const [page, file] = [await built('page', {}), await built('recording', recording)];
  const front = await built('hub', hub, { root: join(root, 'web', 'hub'), base: '/hub/' });
  const bar = {
    fileName: join('hub', 'bar.css'),
    code: readFileSync(join(root, 'web', 'hub', 'bar.css'), 'utf8'),
  };
  for (const { fileName, code } of file.files)
    if (/<\/?(script|style)|<!--/i.test(code))
      throw new Error(`${fileName} would end the element that it is written into`);
  return {
    files: [...page.files, ...file.files, ...front.files, bar],
    moduleIds: [...page.moduleIds, ...file.moduleIds, ...front.moduleIds],
  };
};
