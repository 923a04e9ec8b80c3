// Removes files of dist without a source, and makes the commands executable.
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs';

const [dist, src] = ['../dist/', '../src/'].map((folder) => new URL(folder, import.meta.url));

for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  const path = `${entry.parentPath}/${entry.name}`.slice(dist.pathname.length).replace(/^\/+/, '');
  const source = new URL(entry.isDirectory() ? path : path.replace(/\.js$/, '.ts'), src);
  if (path !== '.tsbuildinfo' && !existsSync(source)) rmSync(new URL(path, dist), { recursive: true, force: true });
}
for (const bin of ['agent', 'agent-server']) chmodSync(new URL(`cli/${bin}.js`, dist), 0o755);
