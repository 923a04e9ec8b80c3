import { type Right, rights } from '../../machines/errors.ts';
import { isJsonObject } from '../../machines/json.ts';
import { roles } from '../../machines/task.ts';

/**
 * The rights that routes, methods, operations, tools and commands need. What is not here is refused
 * to all but the token of the server; a test walks everything that is registered.
 *
 * read: see everything but secrets. run: create, edit, delete, run, cancel, answer questions. review:
 * approvals, reviews, merges, publishing, discarding, undoing. admin: tokens, configuration, prune,
 * the server. Beside the ladder stands `runner`, which none of these needs.
 */
export type TokenRights = Right | 'runner';
export const tokenRights = [...rights, 'runner'] as const satisfies readonly TokenRights[];

export const holds = (given: string, needs: Right): boolean => {
  const ladder: readonly string[] = rights;
  return ladder.indexOf(given) >= ladder.indexOf(needs);
};

type Table = Readonly<Record<string, Right>>;

/** By `METHOD url`. `open`: answers without a token. Methods and operations have rights of their own. */
export const routeRights: Readonly<Record<string, Right | 'open'>> = {
  'GET /health': 'open',
  'GET /health/ready': 'open',
  'GET /': 'open',
  'GET /assets/:name': 'open',
  'POST /page/session': 'open',
  'GET /.well-known/agent-card.json': 'open',
  'GET /.well-known/agent.json': 'open',
  'GET /agents/:role/.well-known/agent-card.json': 'open',
  // Signed.
  'POST /forge/webhook': 'open',
  'POST /page/codes': 'read',
  'GET /page/session': 'read',
  'DELETE /page/session': 'read',
  'POST /a2a/execute': 'read',
  'POST /a2a/status': 'read',
  'POST /a2a/discovery': 'read',
  'GET /a2a/discovery': 'read',
  ...Object.fromEntries(
    ['/a2a', '/a2a/', '/agents/:role/a2a', '/agents/:role/a2a/'].map(
      (url) => [`POST ${url}`, 'read'] as const,
    ),
  ),
  ...Object.fromEntries(
    ['/a2a/rest/*', '/agents/:role/a2a/rest/*'].flatMap((url) =>
      ['GET', 'POST', 'DELETE', 'PUT', 'PATCH'].map((verb) => [`${verb} ${url}`, 'read'] as const),
    ),
  ),
  'POST /mcp': 'read',
  'POST /mcp/': 'read',
  'GET /openapi.json': 'read',
  'GET /metrics': 'read',
  // The whole configuration, with headers and variables of MCP servers.
  'GET /surroundings': 'admin',
  'GET /stream': 'read',
  'GET /stream/:task_id': 'read',
  'GET /inspect': 'read',
  'GET /export/:task_id': 'read',
  'GET /images/:task_id/:digest': 'read',
  'POST /images': 'run',
};

/** JSON-RPC, with and without `a2a.`. */
export const methodRights: Table = {
  status: 'read',
  discovery: 'read',
  list: 'read',
  history: 'read',
  explain: 'read',
  diff: 'read',
  decisions: 'read',
  usage: 'read',
  replay: 'read',
  pull_request: 'read',
  sources: 'read',
  audit: 'read',
  'workflow.list': 'read',
  'workflow.show': 'read',
  create: 'run',
  import: 'run',
  import_issues: 'run',
  edit: 'run',
  delete: 'run',
  add_dependency: 'run',
  remove_dependency: 'run',
  execute: 'run',
  run: 'run',
  retry: 'run',
  cancel: 'run',
  close: 'run',
  reopen: 'run',
  respond: 'run',
  'workflow.start': 'run',
  'workflow.retry': 'run',
  'workflow.cancel': 'run',
  review: 'review',
  merge: 'review',
  merge_many: 'review',
  update: 'review',
  undo: 'review',
  publish: 'review',
  discard: 'review',
  'token.create': 'admin',
  'token.list': 'admin',
  'token.revoke': 'admin',
};

const isPublishing = (options: unknown): boolean =>
  isJsonObject(options) && options['publish'] === true;

/**
 * To allow or deny calls is an approval; an answer in words is none. A run that publishes its work
 * publishes.
 */
export const needsOfMethod = (method: string, params: unknown): Right | undefined => {
  const given = isJsonObject(params) ? params : {};
  const isMore =
    (method === 'respond' && given['decision'] !== undefined) || isPublishing(given['options']);
  const needs = methodRights[method];
  return needs === 'run' && isMore ? 'review' : needs;
};

/** Operations of A2A, in every version and binding. No message of A2A grants an approval. */
export const operationRights: Table = {
  GetTask: 'read',
  ListTasks: 'read',
  SubscribeToTask: 'read',
  GetExtendedAgentCard: 'read',
  GetTaskPushNotificationConfig: 'read',
  ListTaskPushNotificationConfigs: 'read',
  CreateTaskPushNotificationConfig: 'run',
  DeleteTaskPushNotificationConfig: 'run',
  SendMessage: 'run',
  SendStreamingMessage: 'run',
  CancelTask: 'run',
};

/** `own`: what a message says under our extension. */
export const needsOfOperation = (name: string, own: unknown): Right | undefined =>
  operationRights[name] === 'run' && isJsonObject(own) && isPublishing(own['options'])
    ? 'review'
    : operationRights[name];

/** Tools of MCP. `answer` also decides where `mcp.answer` is all, which needs review. */
export const toolRights: Table = {
  list_tasks: 'read',
  task_status: 'read',
  wait_for_task: 'read',
  explain: 'read',
  diff: 'read',
  pull_request: 'read',
  create_task: 'run',
  run: 'run',
  answer: 'run',
  merge: 'review',
  publish: 'review',
};

/** By the first word of the command line, and where it differs by its action (`*`: the others). */
export const commandRights: Readonly<Record<string, Right | Table>> = {
  list: 'read',
  ps: 'read',
  show: 'read',
  logs: 'read',
  watch: 'read',
  wait: 'read',
  explain: 'read',
  replay: 'read',
  export: 'read',
  usage: 'read',
  diff: 'read',
  pr: 'read',
  roles: 'read',
  nodes: 'read',
  doctor: 'read',
  open: 'read',
  mcp: 'read',
  audit: 'read',
  completion: 'read',
  'register-handler': 'read',
  'unregister-handler': 'read',
  create: 'run',
  import: 'run',
  run: 'run',
  ...Object.fromEntries(roles.map((role) => [role, 'run'] as const)),
  edit: 'run',
  close: 'run',
  cancel: 'run',
  retry: 'run',
  reopen: 'run',
  delete: 'run',
  respond: 'run',
  dep: { tree: 'read', '*': 'run' },
  workflow: { list: 'read', show: 'read', check: 'read', '*': 'run' },
  merge: 'review',
  update: 'review',
  undo: 'review',
  publish: 'review',
  discard: 'review',
  review: 'review',
  config: { show: 'read', get: 'read', path: 'read', '*': 'admin' },
  server: { status: 'read', logs: 'read', '*': 'admin' },
  hub: { status: 'read', '*': 'admin' },
  auth: { status: 'read', '*': 'admin' },
  init: 'admin',
  store: 'admin',
  prune: 'admin',
  token: 'admin',
};

/** Null: the command is not in the table. `config` alone shows. */
export const needsOfCommand = (name: string, action: unknown): Right | null => {
  const found = commandRights[name];
  if (found === undefined || typeof found === 'string') return found ?? null;
  return found[action === undefined ? 'show' : String(action)] ?? found['*'] ?? null;
};
