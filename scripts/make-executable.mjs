import { chmodSync } from 'node:fs';

for (const bin of ['agent', 'agent-server']) chmodSync(new URL(`../dist/cli/${bin}.js`, import.meta.url), 0o755);
