const layers = ['machines', 'actors', 'http', 'cli'];
const adapters = [
  'tracker',
  'model',
  'assistants',
  'sandbox',
  'workspace',
  'process',
  'files',
  'store',
  'ledger',
  'mcp',
  'forge',
];
const homes = {
  actors: 'openai|execa|libsql|pg|@octokit',
  http: 'fastify|fastify-sse-v2|json-rpc-2\\.0',
  cli: 'yargs|pino|yaml',
};
const error = (name, from, to, comment) => ({ name, severity: 'error', from, to, comment });

export default {
  forbidden: [
    ...layers
      .slice(0, -1)
      .map((layer, i) =>
        error(
          `${layer}-looks-down-only`,
          { path: `^src/${layer}/` },
          { path: `^src/(${layers.slice(i + 1).join('|')})/` },
          'Imports run cli -> http -> actors -> machines. Move the code down, or pass it in as a port or an option.',
        ),
      ),
    error(
      'machines-are-pure',
      { path: '^src/machines/' },
      { dependencyTypes: ['core', 'npm'], pathNot: 'node_modules/(xstate|zod)/' },
      'A machine does no I/O. Declare an actor (declare-actor.ts) and let src/actors provide it.',
    ),
    ...Object.entries(homes).map(([layer, packages]) =>
      error(
        `${layer}-owns-its-packages`,
        { path: '^src/', pathNot: `^src/${layer}/` },
        { path: `node_modules/(${packages})/`, dependencyTypesNot: ['type-only'] },
        `Only src/${layer} uses this package; ask it through a port, or move the code there.`,
      ),
    ),
    error(
      'adapters-know-no-engine',
      { path: `^src/actors/(${adapters.join('|')})/` },
      { path: '^src/actors/(engine|agent|tools|journal)/' },
      'An adapter works for any engine. Move the code to the engine, or pass what it needs as a port or an option.',
    ),
    error(
      'postgresql-has-one-door',
      { path: '^src/', pathNot: '^src/actors/store/postgres/' },
      { path: 'node_modules/pg/' },
      'Only store/postgres connects to PostgreSQL.',
    ),
    error(
      'only-the-engine-imports-agent',
      { path: '^src/actors/', pathNot: '^src/actors/(engine|agent)/' },
      { path: '^src/actors/agent/' },
      'The engine runs the agent loop. Move what others need to the folder that it belongs to.',
    ),
    error(
      'the-agent-knows-no-engine',
      { path: '^src/actors/(agent|tools|journal)/' },
      { path: '^src/actors/engine/' },
      'The engine runs the agent, its tools and the journal. Move the shared type to the lower folder.',
    ),
    error(
      'readers-of-the-journal-know-no-engine',
      { path: '^src/actors/(notify|telemetry)/' },
      { path: '^src/actors/(engine|agent|tools)/' },
      'Webhooks and traces follow the journal. Read what they need from its entries.',
    ),
    error(
      'actors-know-no-reader',
      { path: '^src/actors/', pathNot: '^src/actors/(notify|telemetry)/' },
      { path: '^src/actors/(notify|telemetry)/' },
      'src/cli/server starts webhooks and traces. The engine works without them.',
    ),
    error(
      'no-cycles',
      {},
      { circular: true },
      'Type imports count. Move the shared type to the lower file.',
    ),
    error(
      'the-page-shares-little',
      { path: '^web/' },
      {
        path: '^src/',
        pathNot:
          '^src/(cli/client/sse-parser|http/worked-time|machines/(agent/call-in-words|conflict-words|message-of|patch-name|phase|plural)|actors/store/rows/snapshot-data)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
      'The page runs in a browser: it takes types from src, and nine files that need nothing.',
    ),
    error(
      'programs-know-no-page',
      { path: '^src/' },
      { path: '^web/' },
      'The programs serve the built files of the page, and import nothing from it.',
    ),
    error(
      'page-packages',
      { path: '^src/' },
      { path: 'node_modules/(preact|@preact)/' },
      'Only web uses this package.',
    ),
    error('no-tests-in-src', { path: '^src/' }, { path: '^test/' }, 'Test code stays in test/.'),
    {
      name: 'no-orphans',
      severity: 'warn',
      from: { orphan: true, path: '^src/' },
      to: {},
      comment: 'Nobody imports it: delete it.',
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
