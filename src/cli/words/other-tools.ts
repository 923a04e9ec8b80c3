import { roles } from '../../machines/task.ts';

type Advice = Readonly<Record<string, string>>;

/** Commands of gh, docker, kubectl and git, each with ours. */
const commandsOfOthers: Advice = {
  add: 'agent create "<description>"',
  answer: 'agent respond <task_id> "<answer>"',
  apply: 'agent merge <task_id>, or agent create -F <file>',
  approve: 'agent review <task_id> --approve, or agent respond <task_id> --allow',
  assign: 'agent edit <task_id> --role engineer',
  attach: 'agent logs -f <task_id>',
  branch: 'agent show <task_id>',
  checkout: 'agent diff <task_id>, or agent merge <task_id>',
  comment: 'agent review <task_id> --comment <file>:<line> "<text>"',
  complete: 'agent close <task_id>',
  dashboard: 'agent open',
  deny: 'agent respond <task_id> --deny',
  describe: 'agent show <task_id>, or agent explain <task_id>',
  done: 'agent close <task_id>',
  down: 'agent server stop',
  events: 'agent logs <task_id>, or agent watch --json',
  exec: 'agent logs --full <task_id>',
  finish: 'agent close <task_id>',
  get: 'agent list, or agent show <task_id>',
  info: 'agent doctor, or agent server status',
  inspect: 'agent show <task_id> --json',
  issue: 'agent create "<description>", agent list, or agent show <task_id>',
  issues: 'agent list',
  kill: 'agent cancel <task_id>',
  label: 'agent edit <task_id> --label <text>',
  login: 'agent auth login <provider>',
  new: 'agent create "<description>"',
  pull: 'agent merge <task_id>',
  remove: 'agent delete <task_id>',
  reply: 'agent respond <task_id> "<answer>"',
  rerun: 'agent retry <task_id>',
  restart: 'agent retry <task_id>, or agent server restart',
  resume: 'agent retry <task_id>',
  rollout: 'agent reopen <task_id>',
  'run cancel': 'agent cancel <task_id>',
  'run list': 'agent list',
  'run rerun': 'agent retry <task_id>',
  'run view': 'agent show <task_id>',
  'run watch': 'agent logs -f <task_id>',
  serve: 'agent server start',
  start: 'agent run <task_id>, or agent server start',
  stats: 'agent usage',
  stop: 'agent cancel <task_id>, or agent server stop',
  tail: 'agent logs -f <task_id>',
  task: 'agent create "<description>", agent list, or agent show <task_id>',
  tasks: 'agent list',
  top: 'agent watch, or agent usage',
  up: 'agent run',
  view: 'agent show <task_id>',
};

const json = { '-o': '--json', '--output': '--json', '--format': '--json' };

/** Flags that every command would take. */
const anywhere: Advice = {
  ...json,
  '--jq': '--json, and pipe it into jq',
  '--template': '--json, and pipe it into jq',
  '-C': '--project <folder>',
  '-R': '--project <folder>',
  '--repo': '--project <folder>',
  '--cwd': '--project <folder>',
  '--context': '--project <folder>',
  '--no-color': 'the variable NO_COLOR=1',
};

const runs: Advice = {
  '-d': '--async',
  '--detach': '--async',
  '--background': '--async',
  '-m': '--model <name>',
  '-t': '--timeout <seconds>',
};
const reasons: Advice = {
  '-c': '--reason <text>',
  '--comment': '--reason <text>',
  '-m': '--reason <text>',
  '--message': '--reason <text>',
  '-r': '--reason <text>',
};
const createUsage = 'agent create "<description>", or agent create -F <file>';
const web = { '-w': 'agent open <task_id>', '--web': 'agent open <task_id>' };
const applied = 'agent diff <task_id> | git apply';

/** By command; a role has those of `run`. */
const flagsOfOthers: Readonly<Record<string, Advice>> = {
  cancel: reasons,
  close: reasons,
  create: {
    ...runs,
    '-b': createUsage,
    '--body': createUsage,
    '-m': createUsage,
    '--message': createUsage,
    '--description': createUsage,
    '--body-file': 'agent create -F <file>',
    '-t': '--title <text>',
    '-l': '--label <text>',
    '-p': '--priority <n>',
    '-a': '--role <role>',
    '--assignee': '--role <role>',
    '--depends-on': '--deps <task_id>',
    '--blocked-by': '--deps <task_id>',
    '--needs': '--deps <task_id>',
  },
  delete: {
    '-f': 'agent delete <task_id>, which asks nothing',
    '--force': 'agent delete <task_id>, which asks nothing',
    '-y': 'agent delete <task_id>, which asks nothing',
    '--yes': 'agent delete <task_id>, which asks nothing',
  },
  diff: {
    ...web,
    '--stat': `${applied} --stat`,
    '--shortstat': `${applied} --stat`,
    '--numstat': `${applied} --numstat`,
    '--name-only': `${applied} --numstat`,
    '--name-status': `${applied} --summary`,
    '--patch': 'agent diff <task_id>, which is a patch',
  },
  edit: {
    '-b': '--description <text>',
    '--body': '--description <text>',
    '-t': '--title <text>',
    '--add-label': '--label <text>',
    '--add-assignee': '--role <role>',
  },
  list: {
    ...web,
    '-a': '--all',
    '-A': '--all',
    '-f': '--status <status>',
    '--filter': '--status <status>, --role <role> or --label <text>',
    '-l': '--label <text>',
    '--selector': '--label <text>',
    '-L': '--limit <n>',
    '-n': '--limit <n>',
    '-s': '--status <status>',
    '--state': '--status <status>',
    '--assignee': '--role <role>',
    '-q': "agent list --json | jq -r '.[].task_id'",
    '--quiet': "agent list --json | jq -r '.[].task_id'",
    '--search': 'agent list --all | grep <text>',
    '--sort-by': '--sort <key>',
    '--no-trunc': 'agent list | cat',
    '-w': 'agent watch',
    '--watch': 'agent watch',
  },
  logs: {
    '-n': 'agent logs <task_id> | tail -n <lines>',
    '--tail': 'agent logs <task_id> | tail -n <lines>',
    '--lines': 'agent logs <task_id> | tail -n <lines>',
    '--since': 'agent logs <task_id> --attempt <n>',
    '-p': 'agent logs <task_id> --attempt <n>',
    '--previous': 'agent logs <task_id> --attempt <n>',
    '-t': 'agent logs <task_id> --json',
    '--timestamps': 'agent logs <task_id> --json',
    '--log': 'agent logs <task_id> --full',
  },
  merge: {
    '-s': '--squash',
    '-m': '--squash',
    '--merge': '--squash',
    '-r': '--squash',
    '--rebase': '--squash',
    '--no-ff': '--squash',
    '-d': 'agent prune',
    '--delete-branch': 'agent prune',
    '--admin': '--force',
  },
  ps: { '-a': 'agent list --all', '--all': 'agent list --all' },
  reopen: reasons,
  respond: { '-y': '--allow', '--yes': '--allow', '--approve': '--allow', '--no': '--deny' },
  retry: { ...runs, ...reasons },
  review: {
    '-a': '--approve',
    '-r': '--request-changes',
    '-b': '--comment . "<text>"',
    '-c': '--comment . "<text>"',
    '--body': '--comment . "<text>"',
  },
  run: { ...runs, '--all': 'agent run', '--watch': 'agent watch' },
  server: {
    '--tail': 'agent server logs -n <lines>',
    '-d': 'agent server start',
    '--detach': 'agent server start',
  },
  show: {
    ...web,
    '-c': 'agent diff <task_id> --comments',
    '-f': 'agent logs -f <task_id>',
    '--watch': 'agent logs -f <task_id>',
    '--log': 'agent logs <task_id>',
  },
  wait: {
    '-t': '--timeout <seconds>',
    '--for': 'agent wait <task_id>, which waits for the end',
  },
};

const statusesOfOthers: Advice = {
  aborted: 'cancelled',
  canceled: 'cancelled',
  closed: 'complete',
  completed: 'complete',
  doing: 'started',
  done: 'complete',
  error: 'failed',
  exited: 'complete',
  failure: 'failed',
  finished: 'complete',
  in_progress: 'started',
  killed: 'cancelled',
  merged: 'complete',
  open: 'queued',
  pending: 'queued',
  ready: 'queued',
  running: 'started',
  stopped: 'cancelled',
  success: 'complete',
  succeeded: 'complete',
  todo: 'queued',
  waiting: 'active',
  working: 'started',
};

/** Every word with its advice, by the command in which it stands; null for a command of its own. */
export const adviceOfAll: readonly (readonly [
  command: string | null,
  word: string,
  use: string,
])[] = [
  ...Object.entries(commandsOfOthers).map(([word, use]) => [null, word, use] as const),
  ...Object.entries(flagsOfOthers).flatMap(([command, table]) =>
    Object.entries(table).map(([flag, use]) => [command, flag, use] as const),
  ),
  ...Object.entries(anywhere).map(([flag, use]) => ['show', flag, use] as const),
];

const adviceIn = (table: Advice | undefined, word: string): string | null =>
  table !== undefined && Object.hasOwn(table, word) ? (table[word] ?? null) : null;

/** Their providers are used where the configuration names none. */
export const choosingKeys: readonly string[] = [
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'OPENROUTER_API_KEY',
];

/** The key that a person typed is not repeated. */
export const keyAdvice = (variable: string): string =>
  `keep it for every server: agent auth login <provider>; or set it in the shell, then start the server again: export ${variable}=…, then agent server restart`;

/** The command lines that do what a command of another tool would; null for no such command. */
export const commandAdvice = (command: string): string | null =>
  adviceIn(commandsOfOthers, command);

/** Our words for a flag such as `--tail` or `-o`; null for none of another tool. */
export const flagAdvice = (command: string, flag: string): string | null => {
  const isRole = roles.some((role) => role === command);
  const name = flag.startsWith('--') ? flag : flag.slice(0, 2);
  return adviceIn(flagsOfOthers[isRole ? 'run' : command], name) ?? adviceIn(anywhere, name);
};

/** Our status for one of another tool; null for none. */
export const statusAdvice = (status: string): string | null =>
  adviceIn(statusesOfOthers, status.toLowerCase().replaceAll('-', '_'));
