import { basename, join } from 'node:path';
import type { AssistantNeeds } from '../../sandbox/port.ts';
import { createClaude } from '../claude.ts';
import { createCodex } from '../codex.ts';
import { homeIn } from '../program.ts';
import type { UsageMeaning } from './usage.ts';

type AgentVariables = Readonly<Record<string, string>>;

export interface AcpAgent {
  readonly args: readonly string[];
  /** Variables of the user that it gets. */
  readonly variables: readonly string[];
  readonly providers: readonly string[];
  /** Variables that we set. They keep the project's plugins and updates off. */
  readonly settings: (env: AgentVariables) => AgentVariables;
  readonly needs: (env: AgentVariables) => AssistantNeeds;
  readonly usage: UsageMeaning;
  readonly reportsCost: boolean;
  /** True when it asks before each call that changes something or runs a command. */
  readonly asks: boolean;
  /** Null: as it starts. */
  readonly askingMode: string | null;
  /** True when it starts MCP servers only where the settings of the project apply, too. */
  readonly ignoresServers?: boolean;
  /** Its last piece of a message begins so when its provider refused a call, and it ends as done. */
  readonly errorPiece?: RegExp;
}

const noSettings = (): AgentVariables => ({});

const opencodeFolder = (env: AgentVariables): string => join(homeIn(env), '.local/share/opencode');
const opencode: AcpAgent = {
  args: ['acp'],
  variables: ['OPENCODE_API_KEY', 'OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENROUTER_API_KEY'],
  providers: [
    ...['opencode.ai', 'models.dev', 'api.openai.com', 'api.anthropic.com', 'openrouter.ai'],
  ],
  settings: (env) => ({
    OPENCODE_DB: join(opencodeFolder(env), 'sessions', 'opencode.db'),
    OPENCODE_DISABLE_PROJECT_CONFIG: '1',
    OPENCODE_PURE: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_PERMISSION: JSON.stringify({ edit: 'ask', bash: 'ask', webfetch: 'ask' }),
  }),
  needs: (env) => {
    const settings = join(homeIn(env), '.config/opencode');
    return {
      home: homeIn(env),
      folders: [
        {
          path: opencodeFolder(env),
          sessions: 'sessions',
          credentials: 'auth.json',
          shown: /^$/,
        },
      ],
      files: ['opencode.json', 'opencode.jsonc', 'config.json', 'AGENTS.md'].map((name) =>
        join(settings, name),
      ),
      // It runs the plugins in this folder whatever its settings are (1.18).
      hides: ['.opencode'],
      makesOwnSandbox: false,
    };
  },
  // It tells the usage of the last model call alone, and the cost of the session.
  usage: 'untold',
  reportsCost: true,
  asks: true,
  askingMode: null,
};

const gemini: AcpAgent = {
  args: ['--acp'],
  variables: [
    ...['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GEMINI_BASE_URL'],
    ...['GOOGLE_GENAI_USE_VERTEXAI', 'GOOGLE_CLOUD_PROJECT', 'GOOGLE_CLOUD_LOCATION'],
  ],
  providers: [
    ...['generativelanguage', 'cloudcode-pa', 'oauth2', 'aiplatform'].map(
      (name) => `${name}.googleapis.com`,
    ),
  ],
  settings: noSettings,
  needs: (env) => ({
    home: homeIn(env),
    folders: [
      {
        path: join(homeIn(env), '.gemini'),
        sessions: 'tmp',
        credentials: 'oauth_creds.json',
        // Without trustedFolders.json it trusts no folder: settings of a project do not apply.
        shown: /^(settings\.json|GEMINI\.md|google_accounts\.json|installation_id|commands)$/,
      },
    ],
    files: [],
    makesOwnSandbox: false,
  }),
  usage: 'quota',
  reportsCost: false,
  asks: true,
  askingMode: 'default',
  // In a folder that it does not trust (0.61).
  ignoresServers: true,
};

const copilot: AcpAgent = {
  args: ['--acp'],
  variables: [
    ...['COPILOT_GITHUB_TOKEN', 'GH_TOKEN', 'GH_HOST', 'COPILOT_GH_HOST', 'COPILOT_OFFLINE'],
    ...['COPILOT_PROVIDER_BASE_URL', 'COPILOT_PROVIDER_TYPE', 'COPILOT_PROVIDER_API_KEY'],
    ...['COPILOT_PROVIDER_WIRE_API', 'COPILOT_MODEL'],
  ],
  providers: [
    ...['github.com', 'api.github.com', 'api.githubcopilot.com'],
    ...['individual', 'business', 'enterprise'].map((plan) => `api.${plan}.githubcopilot.com`),
  ],
  settings: () => ({ COPILOT_AUTO_UPDATE: 'false' }),
  needs: (env) => ({
    home: homeIn(env),
    folders: [
      {
        path: join(homeIn(env), '.copilot'),
        sessions: 'session-state',
        credentials: 'config.json',
        shown: /^(settings\.json|mcp-config\.json|copilot-instructions\.md|agents|skills)$/,
      },
    ],
    files: [],
    hides: ['.github/hooks', '.github/copilot', '.github/mcp.json', '.claude', '.copilot'],
    makesOwnSandbox: false,
  }),
  usage: 'untold',
  reportsCost: false,
  asks: true,
  askingMode: null,
  // Whole, where the words of its model come in small pieces (1.0.102).
  errorPiece: /^Error: /,
};

const codex = createCodex();
const codexAcp: AcpAgent = {
  args: [],
  variables: codex.variables,
  providers: codex.providers,
  settings: noSettings,
  needs: codex.needs,
  usage: 'cached_apart',
  reportsCost: false,
  asks: false,
  // In its own choice (2.6) another call of the model decides on calls, and may deny them.
  askingMode: 'workspace-write',
};

const claude = createClaude();
const claudeAcp: AcpAgent = {
  args: [],
  variables: claude.variables,
  providers: claude.providers,
  settings: noSettings,
  needs: claude.needs,
  usage: 'cached_apart',
  reportsCost: true,
  asks: true,
  askingMode: 'default',
};

const unknownAgent: AcpAgent = {
  args: [],
  variables: [],
  providers: [],
  settings: noSettings,
  needs: (env) => ({ home: homeIn(env), folders: [], files: [], makesOwnSandbox: false }),
  usage: 'untold',
  reportsCost: false,
  asks: false,
  askingMode: null,
};

const knownAgents: Readonly<Record<string, AcpAgent>> = {
  opencode,
  gemini,
  copilot,
  'codex-acp': codexAcp,
  'claude-agent-acp': claudeAcp,
};

export const acpVariables: readonly string[] = [
  ...new Set(Object.values(knownAgents).flatMap(({ variables }) => variables)),
];

/**
 * The agent of `api.acp.command`, by the file name of its program. A known program without
 * arguments gets those that it needs.
 */
export const acpAgent = ([program, ...args]: readonly [string, ...string[]]): AcpAgent & {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
} => {
  const name = basename(program);
  const agent = knownAgents[name] ?? unknownAgent;
  return { ...agent, name, argv: [program, ...(args.length === 0 ? agent.args : args)] };
};
