// Writes `dist`, the programs and the web page as they are published, with the packages that they
// need, as CommonJS (ADR 0111); and `build`, one module for each source of the programs, for scripts, benches and tests.
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { isolatedDeclarationSync } from 'rolldown/experimental';
import { transformSync } from 'rolldown/utils';
import { bundledPackages, licenceTexts } from './licences.mjs';
import { buildPage } from './page.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const target = 'es2023';
const programs = ['cli/agent', 'cli/agent-server', 'cli/agent-hub'];
/** The server starts them as threads. */
const threads = ['workspace/saving/snapshot-worker', 'gates/judge', 'tools/make-edits'].map(
  (name) => `actors/${name}`,
);
/** Loaded by `require`, since it is large and seldom needed at once. */
const late = ['actors/model/price-data'];
/** Parts that tests load from `dist` often, since it loads faster than `build`. */
const parts = [
  ...['cli/run-agent', 'cli/server/run-server', 'cli/config/config'],
  ...['actors/process/run-command', 'actors/workspace/worktrees/select-workspace'],
];
/** What `agent-task-server/client` and `/client/node` are, and the modules that their types are in. */
const client = { name: 'client/index', source: 'cli/client/public-client' };
const nodeClient = { name: 'client/node', source: 'cli/client/node-client' };
const clientTypes = ['client', 'task-client', 'wire-types'].map((name) => `cli/client/${name}`);
/** The packages of `dependencies`: native code cannot be bundled. */
const external = Object.keys(
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies,
);

/**
 * A bundler moves modules, and CommonJS has no `import.meta.url`. With this each module still finds
 * its files from where it would be without a bundler.
 */
const keepPlaces = {
  name: 'keep-places',
  transform: {
    filter: { id: { exclude: /^\0/ }, code: 'import.meta.url' },
    handler: (code, id) => {
      const place = relative(root, id)
        .replace(/^src\//, 'dist/')
        .replace(/\.ts$/, '.js');
      return code.replaceAll('import.meta.url', `placeOf(${JSON.stringify(place)})`);
    },
  },
  renderChunk: (code, { fileName }) => {
    if (!code.includes('placeOf(')) return null;
    const from = dirname(join('dist', fileName));
    const here = "require('node:url').pathToFileURL(__filename)";
    const url = (_, place) => `new URL(${JSON.stringify(relative(from, place))}, ${here}).href`;
    return code.replace(/\bplaceOf\("([^"]+)"\)/g, url);
  },
};

/**
 * Fastify compiles JSON schemas with the first two; no route of ours has one (`src/http/server.ts`).
 * Gaxios uses the third where it is given no fetch (`src/actors/model/ai-sdk-packages.ts`).
 */
const withoutUnused = {
  name: 'without-unused',
  resolveId: {
    filter: {
      id: /^(@fastify\/(ajv-compiler|fast-json-stringify-compiler)|node-fetch)$/,
    },
    handler: () => '\0unused',
  },
  load: { filter: { id: /^\0unused$/ }, handler: () => 'export {};' },
};

/** Of yargs we use the parser; without this, loading it also loads its help and its languages. */
const onlyParser = /node_modules\/(yargs|cliui|y18n|escalade|get-caller-file)\//;

/** Every file takes time to load: what each command needs, and all of `agent list`, is in one. */
const start = ['cli/run-agent', 'cli/output/io'];

/** Tells, once all modules are read, which ones are loaded with one of the entries. */
const importsOf = () => {
  const imports = new Map();
  const found = new Set();
  const add = (id) => {
    if (found.has(id) || !imports.has(id)) return;
    found.add(id);
    for (const each of imports.get(id)) add(each);
  };
  return {
    plugin: {
      name: 'imports-of',
      moduleParsed: ({ id, importedIds }) => void imports.set(id, importedIds),
    },
    isLoadedWith: (entries) => (id) => {
      for (const entry of entries) add(join(root, 'src', `${entry}.ts`));
      return found.has(id);
    },
  };
};

const bundle = async () => {
  const input = {
    ...Object.fromEntries(
      [...programs, ...threads, ...late, ...parts].map((name) => [name, `src/${name}.ts`]),
    ),
    [nodeClient.name]: `src/${nodeClient.source}.ts`,
  };
  const { plugin, isLoadedWith } = importsOf();
  const built = await rolldown({
    ...{
      cwd: root,
      input,
      external,
      platform: 'node',
      preserveEntrySignatures: 'allow-extension',
      transform: { target },
      plugins: [keepPlaces, withoutUnused, plugin],
      treeshake: { moduleSideEffects: [{ test: onlyParser, sideEffects: false }] },
    },
    onLog: (_, { code, message }) => {
      // What is loaded together may still be imported late.
      if (code !== 'INEFFECTIVE_DYNAMIC_IMPORT') throw new Error(message);
    },
  });
  const { output } = await built.generate({
    format: 'cjs',
    // `import` of a module of Node would start the loader of ES modules.
    dynamicImportInCjs: false,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    codeSplitting: {
      groups: [{ name: 'start', test: isLoadedWith(start) }],
      includeDependenciesRecursively: false,
    },
  });
  await built.close();
  return output;
};

/** The client that only speaks HTTP: for every runtime, so it may import nothing. */
const bundleClient = async () => {
  const built = await rolldown({
    ...{ cwd: root, input: `src/${client.source}.ts`, platform: 'neutral' },
    external: () => false,
    transform: { target },
    onLog: (_, { message }) => {
      throw new Error(message);
    },
  });
  const generate = async (format, entryFileNames) =>
    (await built.generate({ format, entryFileNames, codeSplitting: false })).output;
  const files = await Promise.all([
    generate('esm', `${client.name}.mjs`),
    generate('cjs', `${client.name}.js`),
  ]);
  await built.close();
  return files.flat();
};

const modules = () =>
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => {
      const options = {
        target,
        typescript: { onlyRemoveTypeImports: true, rewriteImportExtensions: 'rewrite' },
      };
      const { code, errors } = transformSync(
        name,
        readFileSync(join(root, 'src', name), 'utf8'),
        options,
      );
      if (errors.length > 0) throw new Error(`src/${name}: ${errors[0].message}`);
      return { fileName: name.replace(/\.ts$/, '.js'), code };
    });

/** The declarations of the client, which name no package. */
const declarations = () =>
  [client.source, nodeClient.source, ...clientTypes].map((name) => {
    const source = readFileSync(join(root, 'src', `${name}.ts`), 'utf8');
    const { code, errors } = isolatedDeclarationSync(`${name}.ts`, source);
    if (errors.length > 0) throw new Error(`src/${name}.ts: ${errors[0].message}`);
    const entry = [client, nodeClient].find(({ source: own }) => own === name)?.name;
    return {
      fileName: `${entry ?? `client/${basename(name)}`}.d.ts`,
      code: code.replace(/(from ["']\.\/[\w-]+)\.ts(["'])/g, '$1.js$2'),
    };
  });

const replace = (folder, files) => {
  rmSync(join(root, folder), { recursive: true, force: true });
  for (const { fileName, code } of files) {
    const file = join(root, folder, fileName);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code);
  }
};

const [chunks, clientFiles, page] = await Promise.all([bundle(), bundleClient(), buildPage()]);
const ofModules = { fileName: `${client.name}.d.mts`, code: "export * from './index.js';\n" };
const packages = bundledPackages([
  ...chunks.flatMap(({ moduleIds }) => moduleIds),
  ...page.moduleIds,
]);
const licences = { fileName: 'THIRD_PARTY_LICENSES.txt', code: licenceTexts(packages) };
replace('build', modules());
const kind = { fileName: 'package.json', code: '{"type":"commonjs"}\n' };
replace('dist', [
  ...[...chunks, ...clientFiles, kind, ...declarations(), ofModules],
  ...[...page.files, licences],
]);
for (const name of programs) chmodSync(join(root, 'dist', `${name}.js`), 0o755);
