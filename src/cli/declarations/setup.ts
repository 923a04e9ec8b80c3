import { UsageError } from '../words/usage-error.ts';
import { type CliCommand, defineCommand, readsConfig, startsServer, taskWord } from './command.ts';

const serverCommand = defineCommand({
  name: 'server',
  group: 'setup',
  describe: "Start, stop or restart this project's server, or show its status or log",
  words: [
    {
      name: 'action',
      describe: 'What to do',
      choices: ['start', 'stop', 'restart', 'status', 'logs'],
    },
  ],
  flags: {
    follow: {
      type: 'switch',
      short: 'f',
      actions: ['logs'],
      describe: 'logs: keep printing what is added',
    },
    lines: {
      type: 'number',
      value: 'n',
      short: 'n',
      actions: ['logs'],
      describe: 'logs: how many lines from the end; default: 100',
    },
  },
  common: startsServer,
  examples: [
    ['agent server status', 'exits 6 if no server runs'],
    ['agent server restart', "the server takes this shell's PATH, keys and configuration"],
    ['agent server logs -f', 'watch the log; Ctrl-C ends it'],
  ],
  run: async (context, { action, follow, lines, config, start }) => {
    if (action === 'logs')
      return (await import('../server/logs/log-command.ts')).showServerLog(context, {
        follow,
        lines,
      });
    if (action === 'status')
      return (await import('../server/server-status.ts')).statusOfServer(context);
    const commands = await import('../server/server-commands.ts');
    if (action === 'restart') return commands.restartServerCommand(context, { config, start });
    return action === 'start'
      ? commands.startServerCommand(context)
      : commands.stopServerCommand(context);
  },
});

const nodesCommand = defineCommand({
  name: 'nodes',
  group: 'setup',
  describe: 'Show the servers that share the store of this project',
  words: [],
  flags: {},
  examples: [['agent nodes --json', 'for scripts: state, slots and waiting tasks of each']],
  run: async (context) => (await import('../server/server-commands.ts')).showNodes(context),
});

const storeDeclaration = defineCommand({
  name: 'store',
  group: 'setup',
  describe: 'Carry tasks and journal to another database, whole, or bring its tables up to date',
  words: [
    { name: 'action', describe: 'What to do', choices: ['export', 'import', 'migrate'] },
    {
      name: 'file',
      describe: 'File to write or to read; import takes an empty store only',
      optional: true,
      completes: 'file',
    },
  ],
  flags: {
    'dry-run': {
      type: 'switch',
      actions: ['migrate'],
      default: false,
      describe: 'Print the statements, and change nothing',
    },
  },
  common: readsConfig,
  examples: [
    ['agent store export basket.store', 'write every row of the store to a file'],
    ['agent store import basket.store', 'take them into the store that store.url names now'],
    ['agent store migrate --dry-run', 'what a new version would change in PostgreSQL'],
  ],
  run: async (context, args) =>
    (await import('../setup/store-command.ts')).storeCommand(context, args),
});

export const setupCommands: readonly CliCommand[] = [
  defineCommand({
    name: 'init',
    group: 'setup',
    describe: 'Set up this folder as a project',
    words: [],
    flags: {
      tracker: {
        type: 'text',
        value: 'tracker',
        choices: ['auto', 'bd', 'embedded'],
        default: 'auto',
        describe: 'What keeps the tasks; auto: bd if it is installed, else our own database',
      },
    },
    notesTracker: 'always',
    common: readsConfig,
    examples: [['agent init', 'run bd init --prefix=bd, or create .beads/issues.jsonl']],
    run: async (context, { tracker, config }) =>
      (await import('../setup/init-command.ts')).init(context, tracker, config),
  }),
  defineCommand({
    name: 'doctor',
    group: 'setup',
    describe: 'Check the setup, and say what is missing',
    words: [],
    flags: {
      sandbox: {
        type: 'switch',
        default: false,
        describe: 'Try to escape from the sandbox in every known way, and report each',
      },
      model: {
        type: 'switch',
        default: false,
        describe: 'Send the model a small real request over each protocol, and report the answer',
      },
      journal: {
        type: 'switch',
        default: false,
        describe:
          'Check that no entry of the journal was changed, removed or added by another program',
      },
    },
    notesTracker: 'always',
    common: readsConfig,
    examples: [
      ['agent doctor --json', 'attach this to a bug report'],
      ['agent doctor --model', 'check whether agents can work with your own model server'],
    ],
    run: async (context, { config, sandbox, model, journal }) => {
      if (journal)
        return (await import('../setup/store-command.ts')).checkJournalCommand(context, config);
      if (model)
        return (await import('../setup/model-probe-command.ts')).probeModelCommand(context, config);
      const { doctor, probeSandbox } = await import('../setup/doctor-command.ts');
      return sandbox ? probeSandbox(context, config) : doctor(context, config);
    },
  }),
  defineCommand({
    name: 'auth',
    group: 'setup',
    describe:
      'Keep the key of a model provider, or the token of a forge, for every server of yours',
    words: [
      { name: 'action', describe: 'What to do', choices: ['login', 'status', 'logout'] },
      { name: 'provider', describe: 'Provider, such as anthropic, or github', optional: true },
    ],
    flags: {},
    common: readsConfig,
    examples: [
      ['agent auth login anthropic', 'asks for the key, and shows nothing of it'],
      ['agent auth login openai < key.txt', 'the key on standard input'],
      ['agent auth login github', 'a token that may push, and open pull requests'],
      ['agent auth status', 'where the key of each provider comes from'],
    ],
    run: async (context, args) =>
      (await import('../setup/auth-command.ts')).authCommand(context, args),
  }),
  defineCommand({
    name: 'config',
    group: 'setup',
    describe: 'Show the configuration and where each value is from, or change yours',
    words: [
      {
        name: 'action',
        describe: 'What to do; default: show',
        choices: ['show', 'get', 'set', 'unset', 'edit', 'path'],
        optional: true,
      },
      {
        name: 'key',
        describe: 'Key, such as server.port',
        optional: true,
        completes: 'config_key',
      },
      { name: 'value', describe: 'Value to set', optional: true },
    ],
    flags: {
      global: {
        type: 'switch',
        actions: ['set', 'unset', 'edit', 'path'],
        default: false,
        describe: 'Your file for every project, not only for this one',
      },
    },
    common: readsConfig,
    examples: [
      ['agent config get server.port', 'one value'],
      ['agent config edit', 'open your file for this project in $EDITOR, and check it'],
      ['agent config set api.provider_model gpt-5.1 --global', 'your model in every project'],
      ['agent config unset agent.max_turns', 'back to what your other files or the defaults say'],
    ],
    run: async (context, args) =>
      (await import('../config/config-command.ts')).configCommand(context, args),
  }),
  storeDeclaration,
  defineCommand({
    name: 'roles',
    group: 'setup',
    describe: 'List the roles: tools, limits, and the files that set them',
    words: [],
    flags: {},
    common: readsConfig,
    examples: [['agent roles --json', 'the same as JSON']],
    run: async (context, { config }) =>
      (await import('../roles/roles-command.ts')).listRoles(context, config),
  }),
  serverCommand,
  nodesCommand,
  defineCommand({
    name: 'open',
    group: 'setup',
    describe: 'Open the web page in your browser, signed in; with an id, at that task',
    words: [{ ...taskWord, optional: true }],
    flags: {
      print: {
        type: 'switch',
        default: false,
        describe: 'Print the address, which works once and for 60 seconds, and open nothing',
      },
      direct: {
        type: 'switch',
        default: false,
        describe: "Open the server's own page, without the page of all your projects",
      },
    },
    common: startsServer,
    examples: [
      ['agent open bd-a1b2', 'open one task'],
      ['agent open --print', 'without a desktop, or for a tunnel'],
    ],
    run: async (context, args) => (await import('../page/open-command.ts')).openPage(context, args),
  }),
  defineCommand({
    name: 'mcp',
    group: 'setup',
    describe: 'Serve the tasks to an assistant as MCP tools, on standard input and output',
    words: [],
    flags: {
      allow: {
        type: 'text',
        value: 'server',
        describe: 'Show what changed in a server of mcp.servers, and allow it, instead',
      },
    },
    common: ['project', 'config', 'start'],
    examples: [
      ['claude mcp add tasks -- agent mcp', 'Claude Code creates, runs and merges tasks'],
      ['codex mcp add tasks -- agent mcp', 'Codex does'],
    ],
    run: async (context, { config, allow }) =>
      allow === undefined
        ? (await import('../mcp/mcp-command.ts')).serveMcp(context, { config })
        : (await import('../mcp/allow-server.ts')).allowServer(context, { config, allow }),
  }),
  defineCommand({
    name: 'token',
    group: 'setup',
    describe: "Print the server's token, or replace it (rotate); make tokens for others",
    words: [
      {
        name: 'action',
        describe: 'What to do',
        choices: ['rotate', 'create', 'list', 'revoke'],
        optional: true,
      },
      { name: 'who', describe: 'revoke: the name of the token', optional: true },
    ],
    flags: {
      name: { type: 'text', value: 'name', actions: ['create'], describe: 'Who has it' },
      rights: {
        type: 'text',
        value: 'right',
        choices: ['read', 'run', 'review', 'admin'],
        actions: ['create'],
        describe: 'What it may do; each has those before it',
      },
      expires: {
        type: 'text',
        value: 'time',
        actions: ['create'],
        describe: 'How long it works, such as 30d; default: until it is revoked',
      },
    },
    common: startsServer,
    examples: [
      ['agent token rotate', 'replace the token; the old one stops working'],
      ['agent token create --name ana --rights run', 'ana gives it as AGENT_TOKEN'],
      ['agent token revoke ana', 'it stops at once, with its streams and logins'],
    ],
    run: async (context, { action, who, config, ...given }) => {
      if (who !== undefined && action !== 'revoke')
        throw new UsageError(`token does not take ${JSON.stringify(who)}: see agent token --help`);
      if (action === undefined || action === 'rotate') {
        const { rotateToken, showToken } = await import('../server/server-commands.ts');
        return action === 'rotate' ? rotateToken(context, config) : showToken(context, config);
      }
      const tokens = await import('../people/token-command.ts');
      if (action === 'list') return tokens.listTokens(context);
      return action === 'create'
        ? tokens.createToken(context, given)
        : tokens.revokeToken(context, who);
    },
  }),
  defineCommand({
    name: 'audit',
    group: 'setup',
    describe: 'Show who changed what and from where, or check that nobody changed that log',
    words: [],
    flags: {
      since: {
        type: 'text',
        value: 'time',
        describe: 'Only from then on: 2026-11-22, or 7d for the last seven days',
      },
      task: { type: 'text', value: 'task_id', completes: 'task', describe: 'Only about a task' },
      format: {
        type: 'text',
        value: 'format',
        choices: ['text', 'syslog'],
        default: 'text',
        describe: 'syslog: lines of RFC 5424',
      },
      verify: {
        type: 'switch',
        default: false,
        describe: 'Compute the chain of hashes again; exits 1 at the first line that is not right',
      },
    },
    common: startsServer,
    examples: [
      ['agent audit --task bd-a1b2', 'who did something with a task'],
      ['agent audit --json > audit.jsonl', 'all of it, a line of JSON each'],
      ['agent audit --verify', 'keep the hash that it prints in another place'],
    ],
    run: async (context, args) =>
      (await import('../people/audit-command.ts')).showAudit(context, args),
  }),
];

export const linkCommands: readonly CliCommand[] = [
  defineCommand({
    name: 'register-handler',
    group: 'setup',
    describe: 'Open agent:// links with this program; a link only shows a task',
    words: [],
    flags: {
      force: {
        type: 'switch',
        default: false,
        describe: 'Replace the program that opens them now',
      },
    },
    common: ['json'],
    examples: [['agent register-handler', 'the server runs this on its first start']],
    run: async (context, { force }) =>
      (await import('../handler/register.ts')).register(context, force),
  }),
  defineCommand({
    name: 'unregister-handler',
    group: 'setup',
    describe: 'Stop opening agent:// links',
    words: [],
    flags: {},
    common: ['json'],
    examples: [['agent unregister-handler', 'undo register-handler']],
    run: async (context) => (await import('../handler/register.ts')).unregister(context),
  }),
];
