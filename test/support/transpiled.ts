import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TransformOptions, transformSync } from 'rolldown/utils';

const root = join(import.meta.dirname, '..', '..');

/** A text replacement in one of our files. */
export interface Patch {
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

/** As the build does it. */
const options: TransformOptions = {
  target: 'es2023',
  typescript: { onlyRemoveTypeImports: true, rewriteImportExtensions: 'rewrite' },
};

const transpile = (path: string, folder: string, change: (text: string) => string): void => {
  const { code, errors } = transformSync(
    path,
    change(readFileSync(join(root, path), 'utf8')),
    options,
  );
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const target = join(folder, path.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, code);
};

const isOurs = (path: string): boolean => path.endsWith('process/run-command.ts');
/** Commands of a simulated server are no processes. */
const simulated = (text: string): string =>
  `${text.replace('export const runCommand', 'const runProcess')}
export { runCommand } from '../../../test/simulation/simulated-command.ts';`;

/** Puts the sources and the simulation into an empty folder, as JavaScript. */
export const transpileInto = (folder: string): void => {
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const part of ['src/machines', 'src/actors', 'test/simulation'])
    for (const name of readdirSync(join(root, part), { recursive: true, encoding: 'utf8' }))
      if (name.endsWith('.ts') && !name.endsWith('.test.ts'))
        transpile(join(part, name), folder, (text) => (isOurs(name) ? simulated(text) : text));
};

/** Puts files of the tests into an empty folder, as JavaScript that loads the built modules. */
export const transpileTests = (folder: string, paths: readonly string[]): void => {
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(join(root, 'build'), join(folder, 'src'));
  for (const path of paths) transpile(path, folder, (text) => text);
};

/**
 * Copies such a folder into an empty one, with one change. @throws when the text does not occur
 * exactly once
 */
export const copyPatched = (from: string, to: string, { file, find, put }: Patch): void => {
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  transpile(file, to, (text) => {
    if (text.split(find).length !== 2)
      throw new Error(`${file} must have this exactly once: ${find}`);
    return text.replace(find, () => put);
  });
};
