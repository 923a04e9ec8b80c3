// Writes the runtime packages as CycloneDX to sbom.cdx.json, or to the named file; needs no
// network. `npm sbom --omit dev` leaves out packages that a development tool needs as well (xstate,
// zod), so the lockfile decides.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (name) => JSON.parse(readFileSync(`${root}${name}`, 'utf8'));
const { name, version } = read('package.json');

const runtime = new Set(
  Object.entries(read('package-lock.json').packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, entry]) => `${path.replace(/^.*node_modules\//, '')}@${entry.version}`),
);
const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--offline'];
const all = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));

const components = all.components.filter((part) => runtime.has(`${part.name}@${part.version}`));
const missing = [...runtime].filter((id) => !components.some((part) => `${part.name}@${part.version}` === id));
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
