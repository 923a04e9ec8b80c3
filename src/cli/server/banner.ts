export interface BannerFacts {
  readonly version: string;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly cap: number;
  readonly tracker: string;
  readonly model: string;
  readonly projectRoot: string;
  readonly sandbox: string;
  readonly workspace: string;
  readonly handler: string;
  readonly notes: readonly string[];
}

export const banner = ({
  version,
  url,
  host,
  port,
  cap,
  tracker,
  model,
  projectRoot,
  sandbox,
  workspace,
  handler,
  notes,
}: BannerFacts): string =>
  [
    `Agent Task Server ${version}`,
    `  listening on    ${url} (host ${host}, port ${port})`,
    `  project         ${projectRoot}`,
    '  protocol        GET  /a2a/discovery',
    '                  POST /a2a/execute, POST /a2a/status (JSON-RPC 2.0)',
    '  streaming       GET  /stream/:task_id (SSE)',
    '  features        protocol compliance (JSON-RPC 2.0)',
    '                  SSE streaming',
    `                  parallel execution (max ${cap} concurrent)`,
    `                  tracker integration (${tracker})`,
    `  model           ${model}`,
    `  sandbox         ${sandbox}`,
    `  workspace       ${workspace}`,
    ...notes.map((note) => `  note            ${note}`),
    `  agent:// links  ${handler}`,
    '',
  ].join('\n');
