import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/cli/config/config.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { root, textOf } from './pages.ts';

const files = readdirSync(join(root, 'deploy'), { recursive: true, encoding: 'utf8' })
  .map((name) => join('deploy', name))
  .filter((name) => statSync(join(root, name)).isFile());
const yamlFiles = files.filter((name) => name.endsWith('.yaml'));

interface Resource {
  readonly kind: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly command?: readonly string[];
          readonly workingDir?: string;
        }[];
      };
    };
  };
}
const resources = (): readonly Resource[] =>
  parseAllDocuments(textOf('deploy/kubernetes/agent-task-server.yaml')).map((each) =>
    each.toJS({ merge: true }),
  );
const portOf = (config: string): number => {
  const file = join(temporaryFolder(), 'config.json');
  writeFileSync(file, config);
  return loadConfig({ config: file }, {}).config.server.port;
};

test.for(yamlFiles)('%s is YAML', (file) => {
  for (const each of parseAllDocuments(textOf(file), { merge: true }))
    expect([...each.errors, ...each.warnings]).toEqual([]);
});

test('the configurations are valid, equal, and have the port that probes ask', () => {
  const map = resources().find(({ kind }) => kind === 'ConfigMap')?.data?.['agent-server.json'];
  const alone = textOf('deploy/agent-server.json');
  expect(JSON.parse(map ?? '')).toEqual(JSON.parse(alone));
  const port = portOf(alone);
  const asked = files.flatMap((file) =>
    [...textOf(file).matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, found]) => Number(found)),
  );
  expect(asked.length).toBeGreaterThan(2);
  expect(new Set(asked)).toEqual(new Set([port]));
});

test('servers are started with flags that exist, and asked for paths that exist', () => {
  const reference = textOf('docs/reference/cli.md');
  const api = textOf('docs/reference/http.md');
  const flags = files.flatMap((file) =>
    [...textOf(file).matchAll(/agent-server["', ]+--server[^\n]*/g)].flatMap(([line]) => [
      ...line.matchAll(/--[a-z-]+/g),
    ]),
  );
  expect(flags.length).toBeGreaterThan(4);
  for (const [flag] of flags) expect(reference).toContain(flag);
  const paths = files.flatMap((file) => [...textOf(file).matchAll(/:8080(\/[a-z/]+)/g)]);
  expect(paths.length).toBeGreaterThan(2);
  for (const [, path] of paths) expect(api).toContain(path);
});

test('a server gets longer to end than its agents to finish', () => {
  for (const file of [
    'compose.yaml',
    'kubernetes/agent-task-server.yaml',
    'systemd/agent-server@.service',
  ]) {
    const text = textOf(join('deploy', file));
    const [, given] =
      /(?:stop_grace_period: |terminationGracePeriodSeconds: |TimeoutStopSec=)(\d+)/.exec(text) ??
      [];
    const drain = /--drain-timeout["', ]+(\d+)/.exec(`${text}${textOf('deploy/Dockerfile')}`)?.[1];
    expect([file, Number(given) - Number(drain)]).toEqual([file, 30]);
  }
});

test('files that are named are there', () => {
  const compose = parse(textOf('deploy/compose.yaml'), { merge: true });
  expect(existsSync(join(root, compose.services.one.build.dockerfile))).toBe(true);
  const copied = [...textOf('deploy/Dockerfile').matchAll(/^COPY .*?(deploy\/\S+)/gm)];
  for (const [, file = ''] of copied) expect(existsSync(join(root, file))).toBe(true);
});

test('the image packs into a folder that it made, and both servers of compose run it', () => {
  const dockerfile = textOf('deploy/Dockerfile');
  const [before = '', folder = ''] = dockerfile.split(/ --pack-destination (\S+)/);
  expect(before).toContain(`mkdir ${folder}`);
  const compose = parse(textOf('deploy/compose.yaml'), { merge: true });
  const [, tag] = /^# .* -t (\S+)/.exec(dockerfile) ?? [];
  expect([compose.services.one.image, compose.services.two.image]).toEqual([tag, tag]);
});

test('process 1 of a container is tini, also in Kubernetes, and exec there finds the project', () => {
  const dockerfile = textOf('deploy/Dockerfile');
  expect(dockerfile).toContain('ENTRYPOINT ["tini", "--"]');
  const set = resources().find(({ kind }) => kind === 'StatefulSet');
  const [server] = set?.spec?.template.spec.containers ?? [];
  expect(server?.command).toBeUndefined();
  expect(server?.workingDir).toBe(/^WORKDIR (\/data.*)$/m.exec(dockerfile)?.[1]);
});

test('the pods of Kubernetes are spread over its nodes, and their service promises no port', () => {
  const text = textOf('deploy/kubernetes/agent-task-server.yaml');
  const [, spread] = /topologySpreadConstraints:\n([\s\S]*?)\n {6}\w/.exec(text) ?? [];
  expect(spread).toContain('topologyKey: kubernetes.io/hostname');
  const [, app] = /template:\n {4}metadata: { labels: { app: (\w+) } }/.exec(text) ?? [];
  expect(spread).toContain(`matchLabels: { app: ${app} }`);
  expect(/kind: Service\n[\s\S]*?---/.exec(text)?.[0]).not.toContain('ports:');
});

test('the password of a container may have any letters: it is not in an address', () => {
  const secret = resources().find(({ kind }) => kind === 'Secret');
  expect(secret?.stringData?.['DATABASE_URL']).toMatch(/^postgres:\/\/agents@/);
  const { services } = parse(textOf('deploy/compose.yaml'), { merge: true });
  expect(services.one.environment.DATABASE_URL).not.toContain('$');
  expect(services.one.environment.PGPASSWORD).toBe(services.database.environment.POSTGRES_PASSWORD);
});

test('agent, run as the user of the systemd unit, finds its server: state is in their home', () => {
  const unit = textOf('deploy/systemd/agent-server@.service');
  const [, folder] = /^StateDirectory=(\S+)$/m.exec(unit) ?? [];
  expect(textOf('docs/guides/operating.md')).toContain(`--home-dir /var/lib/${folder} `);
  expect(unit).not.toMatch(/AGENT_STATE_DIR|AGENT_SERVER_CONFIG/);
});

test('the systemd unit lets bubblewrap make a /proc: nothing is mounted over a part of ours', () => {
  const set = textOf('deploy/systemd/agent-server@.service').matchAll(/^(\w+)=/gm);
  const overProc = ['ProtectKernelTunables', 'ProtectKernelLogs', 'ProtectHostname', 'ProcSubset'];
  expect([...set].filter(([, key = '']) => overProc.includes(key))).toEqual([]);
});

test('the guide explains each alert, and each alert asks for metrics that exist', () => {
  const { groups } = parse(textOf('deploy/prometheus/alerts.yaml'));
  const rules: { alert: string; expr: string }[] = groups[0].rules;
  const explained = [...textOf('docs/guides/observing.md').matchAll(/^\| `(Agent\w+)` \|/gm)];
  expect(explained.map(([, name]) => name)).toEqual(rules.map(({ alert }) => alert));
  const names = [...textOf('docs/reference/metrics.md').matchAll(/^\| `(agent_\w+)`/gm)];
  const known = names.map(([, name]) => name);
  const asked = rules.flatMap(({ expr }) => [...expr.matchAll(/\bagent_\w+/g)]);
  for (const [name] of asked) expect(known).toContain(name.replace(/_bucket$/, ''));
});
