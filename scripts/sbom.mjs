// Writes the packages that users run as CycloneDX to sbom.cdx.json, or to the named file; needs no
// network: those that are installed with ours, and those that the build has put into `dist`.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packagesIn } from './licences.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (name) => JSON.parse(readFileSync(`${root}${name}`, 'utf8'));
const { name, version } = read('package.json');

const installed = Object.entries(read('package-lock.json').packages)
  .filter(([path, { dev }]) => path !== '' && dev !== true)
  .map(([path, entry]) => `${path.replace(/^.*node_modules\//, '')}@${entry.version}`);
const bundled = packagesIn(readFileSync(`${root}dist/THIRD_PARTY_LICENSES.txt`, 'utf8'));
const runtime = new Set([...installed, ...bundled]);
const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--offline'];
const all = JSON.parse(
  execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
);

const isDevelopment = ({ name }) => name === 'cdx:npm:package:development';
/** To npm a bundled package is a development tool. */
const asRuntime = ({ properties, ...part }) =>
  properties.some(isDevelopment)
    ? { ...part, scope: 'required', properties: properties.filter((one) => !isDevelopment(one)) }
    : { ...part, properties };
const components = all.components
  .filter((part) => runtime.has(`${part.name}@${part.version}`))
  .map((part) => asRuntime(part));
const missing = [...runtime].filter(
  (id) => !components.some((part) => `${part.name}@${part.version}` === id),
);
if (missing.length > 0) {
  console.error(`npm sbom does not name ${missing.join(', ')}; run npm ci`);
  process.exit(1);
}
const own = `${name}@${version}`;
const refs = new Set([own, ...components.map((part) => part['bom-ref'])]);
const dependencies = all.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }));
const metadata = { ...all.metadata, component: { ...all.metadata.component, name } };

const file = resolve(process.argv[2] ?? 'sbom.cdx.json');
writeFileSync(file, `${JSON.stringify({ ...all, metadata, components, dependencies }, null, 2)}\n`);
console.log(`${components.length} packages: ${file}`);
