import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/temporary.ts';

const root = join(import.meta.dirname, '..', '..');
const run = (folder: string, program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const filesBelow = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));

interface Packed {
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

test('the package has one file per source, the configuration, the examples and the documents, and no more', () => {
  const [packed] = JSON.parse(run(root, 'npm', 'pack', '--dry-run', '--json', '--ignore-scripts')) as readonly Packed[];

  const built = filesBelow('src').map((path) => path.replace(/^src\//, 'dist/').replace(/\.ts$/, '.js'));
  const read = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'];
  const wanted = [...built, ...filesBelow('configs'), ...filesBelow('examples'), ...read];
  expect(packed?.files.map(({ path }) => path).sort()).toEqual(wanted.sort());
  expect(packed?.size).toBeLessThan(1_500_000);
});

test('a build removes files without a source, and nothing else', () => {
  const folder = temporaryFolder();
  for (const path of ['src/cli', 'scripts', 'dist/cli', 'dist/gone'])
    mkdirSync(join(folder, path), { recursive: true });
  cpSync(join(root, 'scripts', 'finish-build.mjs'), join(folder, 'scripts', 'finish-build.mjs'));
  for (const name of ['agent', 'agent-server']) {
    writeFileSync(join(folder, 'src/cli', `${name}.ts`), '');
    writeFileSync(join(folder, 'dist/cli', `${name}.js`), '');
  }
  for (const path of ['dist/.tsbuildinfo', 'dist/cli/old.js', 'dist/cli/agent.js.map', 'dist/gone/old.js'])
    writeFileSync(join(folder, path), '');

  run(folder, process.execPath, 'scripts/finish-build.mjs');

  expect(readdirSync(join(folder, 'dist'), { recursive: true }).sort()).toEqual(
    ['.tsbuildinfo', 'cli', 'cli/agent-server.js', 'cli/agent.js'].sort(),
  );
});

const lockOf = (entry: object): string => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'scripts'));
  cpSync(join(root, 'scripts', 'lockfile.mjs'), join(folder, 'scripts', 'lockfile.mjs'));
  writeFileSync(
    join(folder, 'package-lock.json'),
    JSON.stringify({ packages: { '': {}, 'node_modules/x': { version: '1.0.0', ...entry } } }),
  );
  return folder;
};
const good = { integrity: 'sha512-x' };

test.each([
  ['has no integrity', {}],
  ['has no integrity', { dev: true }],
  ['has no integrity', { optional: true, os: ['darwin'] }],
  ['has no integrity', { dev: true, optional: true }],
  ['has no sha512', { integrity: 'sha1-x' }],
  ['names an address', { ...good, resolved: 'http://127.0.0.1/x.tgz' }],
  ['runs a script', { ...good, hasInstallScript: true }],
  ['is a link', { ...good, link: true }],
])('the check of the lockfile refuses a package that %s: %j', (words, entry) => {
  expect(() => run(lockOf(entry), process.execPath, 'scripts/lockfile.mjs')).toThrow(`node_modules/x ${words}`);
});

test('the check of the lockfile prints why a package has no integrity', () => {
  const said = run(lockOf({ dev: true, optional: true, os: ['darwin'] }), process.execPath, 'scripts/lockfile.mjs');

  expect(said).toContain('x@1.0.0: no integrity: a development tool for other machines');
});

test('the SBOM names each runtime package of the lockfile with its hash, and no other', () => {
  const file = join(temporaryFolder(), 'sbom.json');

  run(root, process.execPath, 'scripts/sbom.mjs', file);

  const bom = JSON.parse(readFileSync(file, 'utf8'));
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean }>;
  };
  const runtime = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);
  const ids = runtime.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`);
  const components: readonly Record<string, unknown>[] = bom.components;
  expect(components.map(({ name, version }) => `${name}@${version}`).sort()).toEqual([...new Set(ids)].sort());
  expect(components.filter(({ purl, hashes, type }) => !purl || !hashes || !type)).toEqual([]);
  expect(bom).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: expect.stringMatching(/^1\.[4-9]$/),
    serialNumber: expect.stringMatching(/^urn:uuid:/),
    metadata: { component: { name: 'agent-task-server' } },
  });
  const refs = new Set([...components.map((part) => part['bom-ref']), bom.metadata.component['bom-ref']]);
  const links: readonly { ref: string; dependsOn: readonly string[] }[] = bom.dependencies;
  expect(links.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).filter((ref) => !refs.has(ref))).toEqual([]);
});
