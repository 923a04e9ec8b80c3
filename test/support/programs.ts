import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import type { TestProject } from 'vitest/node';
import { startBdHost } from './fake-bd/host.mjs';
import { isLong } from './long.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder with `agent.js` and `agent-server.js`, as the tests start them, `run-agent.js` and `workspace-driver.js`. */
    readonly programs: string;
    /** The port that fake bds ask. */
    readonly bdHost: number;
  }
}

const root = join(import.meta.dirname, '..', '..');
const dist = join(root, 'dist');
/** Below the project, so that native packages are found. */
const cache = join(root, 'node_modules', '.cache', 'programs');
const dayMs = 86_400_000;
const names = ['agent.js', 'agent-server.js', 'run-agent.js'];
const driver = join(root, 'test', 'security', 'support', 'workspace-driver.mjs');

/** The programs find each other in the bundle, and other files at their old place. */
const keepPlaces = {
  name: 'keep-places',
  transform: (code: string, id: string): string | null =>
    id.startsWith(dist)
      ? code.replace(/new URL\(((['`])[^'`]*\2), import\.meta\.url\)/g, (_, path: string) =>
          names.includes(basename(path.slice(1, -1)))
            ? `new URL('./${basename(path.slice(1, -1))}', import.meta.url)`
            : `new URL(${path}, ${JSON.stringify(pathToFileURL(id))})`,
        )
      : null,
};

const bundleInto = async (folder: string): Promise<void> => {
  const bundle = await rolldown({
    input: [...names.map((name) => join(dist, 'cli', name)), driver],
    platform: 'node',
    external: ['libsql'],
    plugins: [keepPlaces],
  });
  await bundle.write({ dir: folder, entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js', minify: true });
  await bundle.close();
  // Otherwise Node would compile each file once more to detect its type.
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n');
};

const builtAt = (): number =>
  Math.max(
    ...[driver, import.meta.filename].map((file) => statSync(file).mtimeMs),
    ...readdirSync(dist, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.js'))
      .map((name) => statSync(join(dist, name)).mtimeMs),
  );

const removeOld = (): void => {
  for (const name of readdirSync(cache))
    if (Date.now() - statSync(join(cache, name)).mtimeMs > dayMs) rmSync(join(cache, name), { recursive: true });
};

/**
 * The programs in few files: they start in half the time, and the tests start them a thousand
 * times.
 */
const bundled = async (): Promise<string> => {
  const folder = join(cache, String(builtAt()));
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  removeOld();
  const fresh = mkdtempSync(join(cache, 'new-'));
  // Some tests start them as another user.
  chmodSync(fresh, 0o755);
  await bundleInto(fresh);
  // Another run may have been faster.
  if (!existsSync(folder)) renameSync(fresh, folder);
  return folder;
};

/** The long form starts the programs as they are published. */
export const setup = async (project: TestProject): Promise<() => void> => {
  project.provide('programs', isLong ? join(dist, 'cli') : await bundled());
  const { port, close } = await startBdHost();
  project.provide('bdHost', port);
  return close;
};
