import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bundledPackages, licenceTexts, packagesIn } from '../../scripts/licences.mjs';
import { install } from '../support/installed.ts';
import { noSandbox, testUnless } from '../support/needs.ts';
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

const programs = ['agent', 'agent-server', 'run-agent'].map((name) => `dist/cli/${name}.js`);
const parts = [
  ...['process/run-command', 'workspace/worktrees/select-workspace'],
  ...['workspace/saving/snapshot-worker', 'gates/judge', 'tools/make-edits'],
  'model/price-data',
];
/** A package with these files, as a build sees it. */
const bundledOf = (files: Readonly<Record<string, string>>, license = 'MIT') => {
  const folder = join(temporaryFolder(), 'node_modules', 'x');
  mkdirSync(folder, { recursive: true });
  const about = JSON.stringify({ name: 'x', version: '1.2.3', license });
  for (const [name, text] of Object.entries({ ...files, 'package.json': about }))
    writeFileSync(join(folder, name), text);
  return bundledPackages([
    join(folder, 'index.js'),
    join(folder, 'lib', 'more.js'),
    '/src/cli/agent.ts',
  ]);
};

test('the build publishes the licence and the notice of a package', () => {
  const text = licenceTexts(bundledOf({ LICENSE: 'Do anything.', NOTICE: 'Made by x.' }));

  expect(text).toContain('x@1.2.3 (MIT)\n\nDo anything.\n\nMade by x.\n');
  expect(packagesIn(text)).toEqual(['x@1.2.3']);
});

test.each([
  ['has no licence text', { NOTICE: 'Made by x.' }, 'MIT'],
  ['has the licence GPL-3.0', { LICENSE: 'Share.' }, 'GPL-3.0'],
  ['has the licence UNLICENSED', { LICENSE: 'Do nothing.' }, 'UNLICENSED'],
])('the build refuses a package that %s', (words, files, license) => {
  expect(() => licenceTexts(bundledOf(files, license))).toThrow(`x@1.2.3 ${words}`);
});

const isChunk = (path: string): boolean => /^dist\/chunks\/[\w.-]+\.js$/.test(path);

test('the package has the programs, the configuration, the examples and the documents, and no more', {
  tags: ['slow'],
}, () => {
  const [packed] = JSON.parse(
    run(root, 'npm', 'pack', '--dry-run', '--json', '--ignore-scripts'),
  ) as readonly Packed[];

  const built = [
    ...programs,
    ...['config/config', 'server/run-server'].map((name) => `dist/cli/${name}.js`),
    ...parts.map((name) => `dist/actors/${name}.js`),
    ...['dist/THIRD_PARTY_LICENSES.txt', 'dist/package.json'],
    ...[
      ...['index.js', 'index.mjs', 'index.d.ts', 'index.d.mts', 'node.js', 'node.d.ts'],
      ...['client.d.ts', 'task-client.d.ts', 'wire-types.d.ts'],
    ].map((name) => `dist/client/${name}`),
    ...filesBelow('dist/page'),
    ...filesBelow('dist/hub'),
    'dist/cli/agent-hub.js',
    ...filesBelow('dist/recording'),
  ];
  const read = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'];
  const wanted = [...built, ...filesBelow('configs'), ...filesBelow('examples'), ...read];
  const paths = packed?.files.map(({ path }) => path) ?? [];
  expect(paths.filter((path) => !isChunk(path)).sort()).toEqual(wanted.sort());
  expect(paths.filter(isChunk).sort()).toEqual([...filesBelow('dist/chunks')].sort());
  expect(packed?.size).toBeLessThan(3_000_000);
});

testUnless(noSandbox)(
  'an installed program runs a task with nothing but the packages that are installed with it',
  {
    tags: ['slow'],
  },
  async () => {
    const { run: installed, defaultFile } = install();
    writeFileSync(defaultFile, JSON.stringify({ server: { port: 0 } }));

    const ran = await installed('agent', 'engineer', 'Do it', '--model', 'scripted');

    expect([ran.exitCode, ran.stderr]).toEqual([0, expect.stringContaining('starting a server')]);
    expect((await installed('agent', 'list', '--json')).stdout).toContain('Do it');
  },
);

/** The files that a program loads before it runs. */
const loadedBy = (file: string, known = new Map<string, string>()): ReadonlyMap<string, string> => {
  const code = readFileSync(file, 'utf8');
  known.set(file, code);
  for (const [, path = ''] of code.matchAll(/^(?:const \w+ = )?require\("(\.[^"]+)"\);$/gm))
    if (!known.has(join(file, '..', path))) loadedBy(join(file, '..', path), known);
  return known;
};

const bundledIn = (code: string): readonly string[] =>
  [...code.matchAll(/^\/\/ node_modules\/([^/]+)/gm)].map(([, name]) => name ?? '');

test('a server starts without the packages of providers and the table of prices', () => {
  const loaded = [...loadedBy(join(root, 'dist/cli/server/run-server.js')).values()];

  const packages = new Set(loaded.flatMap(bundledIn));
  expect(packages).toContain('fastify');
  expect(
    [...packages].filter((name) =>
      /^openai|^undici|^@ai-sdk|^@pydantic|^google-auth|^@smithy/.test(name),
    ),
  ).toEqual([]);
});

test('before a command runs, the parser is the only package that is loaded, and no network', () => {
  const loaded = [...loadedBy(join(root, 'dist/cli/agent.js')).values()];
  const whole = [...loadedBy(join(root, 'dist/cli/agent-server.js')).values()].join('\n');

  expect(new Set(loaded.flatMap(bundledIn))).toEqual(new Set(['yargs', 'yargs-parser']));
  expect(loaded.join('\n').length).toBeLessThan(206_000);
  expect(loaded.join('\n')).not.toMatch(/^[^\t]*require\("(node:)?(http|net|child_process)"\)/m);
  expect(bundledIn(whole)).toContain('zod');
});

test('the client can be imported and required', () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules', 'agent-task-server'));
  const name = "'agent-task-server/client'";
  const says = (load: string) =>
    run(
      folder,
      process.execPath,
      '-e',
      `${load}.then((it) => console.log(typeof it.createClient, typeof it.CallError))`,
    );

  expect([says(`import(${name})`), says(`Promise.resolve(require(${name}))`)]).toEqual(
    Array(2).fill('function function\n'),
  );
});

test('removes files of an earlier build; emits one module per source', { tags: ['slow'] }, () => {
  const folder = temporaryFolder();
  for (const part of ['src', 'web', 'scripts', 'package.json', 'tsconfig.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const path of ['dist/chunks/old-1.js', 'build/gone/old.js']) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), '');
  }

  run(folder, process.execPath, 'scripts/build.mjs');

  const [dist, built] = ['dist', 'build'].map((part) =>
    readdirSync(join(folder, part), { recursive: true }),
  );
  expect(dist).toContain('cli/agent.js');
  expect(dist).not.toContain('chunks/old-1.js');
  expect(built?.sort()).toEqual(
    readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' })
      .map((path) => path.replace(/\.ts$/, '.js'))
      .sort(),
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
  expect(() => run(lockOf(entry), process.execPath, 'scripts/lockfile.mjs')).toThrow(
    `node_modules/x ${words}`,
  );
});

test('the check of the lockfile prints why a package has no integrity', () => {
  const said = run(
    lockOf({ dev: true, optional: true, os: ['darwin'] }),
    process.execPath,
    'scripts/lockfile.mjs',
  );

  expect(said).toContain('x@1.0.0: no integrity: a development tool for other machines');
});

/** The packages whose code is in the chunks, by the comments of the bundler. */
const bundled = (): readonly string[] => {
  const comments = filesBelow('dist/chunks').flatMap(
    (path) => readFileSync(join(root, path), 'utf8').match(/^\/\/ node_modules\/.*$/gm) ?? [],
  );
  return [
    ...new Set(
      comments.map((comment) => comment.replace(/^.*node_modules\/((@[^/]+\/)?[^/]+)\/.*$/, '$1')),
    ),
  ];
};
const named: readonly string[] = packagesIn(
  readFileSync(join(root, 'dist/THIRD_PARTY_LICENSES.txt'), 'utf8'),
);

test('the licence of each package in the programs is published with them', () => {
  const names = named.map((id) => id.replace(/@[^@]+$/, ''));

  expect(names).toEqual(expect.arrayContaining(['fastify', 'openai', 'xstate', 'yargs', 'zod']));
  expect(bundled().filter((name) => !names.includes(name))).toEqual([]);
});

test('the SBOM names each package that is installed or in the programs with its hash, and no other', {
  tags: ['slow'],
}, () => {
  const file = join(temporaryFolder(), 'sbom.json');

  run(root, process.execPath, 'scripts/sbom.mjs', file);

  const bom = JSON.parse(readFileSync(file, 'utf8'));
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean }>;
  };
  const runtime = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);
  const ids = runtime.map(
    ([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`,
  );
  const components: readonly Record<string, unknown>[] = bom.components;
  expect(components.map(({ name, version }) => `${name}@${version}`).sort()).toEqual(
    [...new Set([...ids, ...named])].sort(),
  );
  expect(components.filter(({ scope }) => scope === 'excluded')).toEqual([]);
  expect(JSON.stringify(components)).not.toContain('development');
  expect(components.filter(({ purl, hashes, type }) => !purl || !hashes || !type)).toEqual([]);
  expect(bom).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: expect.stringMatching(/^1\.[4-9]$/),
    serialNumber: expect.stringMatching(/^urn:uuid:/),
    metadata: { component: { name: 'agent-task-server' } },
  });
  const refs = new Set([
    ...components.map((part) => part['bom-ref']),
    bom.metadata.component['bom-ref'],
  ]);
  const links: readonly { ref: string; dependsOn: readonly string[] }[] = bom.dependencies;
  expect(
    links.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).filter((ref) => !refs.has(ref)),
  ).toEqual([]);
});
