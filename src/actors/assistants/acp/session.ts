import { z } from 'zod';
import type { Rpc } from './rpc.ts';

export interface AcpDeadlines {
  /** Programs from npm may take seconds to start. */
  readonly initializeMs: number;
  /** Opens, resumes or sets up a session. */
  readonly sessionMs: number;
}
export const acpDeadlines: AcpDeadlines = { initializeMs: 60_000, sessionMs: 120_000 };

const agentInfoSchema = z.looseObject({
  protocolVersion: z.number(),
  agentCapabilities: z
    .looseObject({
      loadSession: z.boolean().nullish(),
      mcpCapabilities: z
        .looseObject({ http: z.boolean().nullish().catch(null) })
        .nullish()
        .catch(null),
      sessionCapabilities: z.looseObject({ resume: z.unknown().optional() }).nullish(),
    })
    .nullish(),
});
const selectSchema = z.looseObject({
  id: z.string(),
  category: z.string().nullish(),
  options: z.array(z.looseObject({ value: z.string() })).catch([]),
});
const setupSchema = z.looseObject({
  modes: z
    .looseObject({ availableModes: z.array(z.looseObject({ id: z.string() })) })
    .nullish()
    .catch(null),
  models: z
    .looseObject({ availableModels: z.array(z.looseObject({ modelId: z.string() })) })
    .nullish()
    .catch(null),
  configOptions: z.array(z.unknown()).nullish().catch(null),
});
type Setup = z.infer<typeof setupSchema>;
const newSessionSchema = setupSchema.extend({ sessionId: z.string().min(1).max(500) });

export interface AcpCapabilities {
  readonly loads: boolean;
  readonly resumes: boolean;
  /** It can use MCP servers over HTTP. */
  readonly speaksHttp: boolean;
}

export interface SessionPlace {
  readonly cwd: string;
  readonly mcpServers: readonly object[];
}

const acpVersion = 1;

/** @throws when it does not answer, or speaks another version */
export const initializeAcp = async (rpc: Rpc, { initializeMs }: AcpDeadlines) => {
  const answer = await rpc.call(
    'initialize',
    {
      protocolVersion: acpVersion,
      // Neither files nor terminals: the agent uses its own, in the sandbox.
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: 'agent-task-server', version: '1' },
    },
    initializeMs,
  );
  const { data } = agentInfoSchema.safeParse(answer);
  if (data?.protocolVersion !== acpVersion)
    throw new Error(`it does not speak version ${acpVersion} of the Agent Client Protocol`);
  const { loadSession, mcpCapabilities, sessionCapabilities } = data.agentCapabilities ?? {};
  return {
    loads: loadSession === true,
    resumes: (sessionCapabilities?.resume ?? false) !== false,
    speaksHttp: mcpCapabilities?.http === true,
  } satisfies AcpCapabilities;
};

export interface OpenSession {
  readonly id: string;
  readonly setup: Setup;
}

const emptySetup: Setup = {};

/** @throws when the agent opens no session */
export const newSession = async (
  rpc: Rpc,
  place: SessionPlace,
  { sessionMs }: AcpDeadlines,
): Promise<OpenSession> => {
  const answer = await rpc.call('session/new', place, sessionMs);
  const { data } = newSessionSchema.safeParse(answer);
  if (data === undefined) throw new Error('its answer to session/new names no session');
  return { id: data.sessionId, setup: data };
};

/** Only by what the agent declared. @throws why the session does not go on */
export const resumeSession = async (
  rpc: Rpc,
  { loads, resumes }: AcpCapabilities,
  { id, ...place }: SessionPlace & { readonly id: string },
  { sessionMs }: AcpDeadlines,
): Promise<OpenSession> => {
  if (!loads && !resumes) throw new Error('it cannot resume sessions');
  const method = resumes ? 'session/resume' : 'session/load';
  const answer = await rpc.call(method, { sessionId: id, ...place }, sessionMs);
  return { id, setup: setupSchema.safeParse(answer).data ?? emptySetup };
};

const optionOf = ({ configOptions }: Setup, category: string) =>
  (configOptions ?? [])
    .flatMap((each) => selectSchema.safeParse(each).data ?? [])
    .find((each) => each.category === category || each.id === category);

const choicesOfOption = (option: ReturnType<typeof optionOf>): readonly string[] =>
  option?.options.map(({ value }) => value) ?? [];

/** Does nothing when the agent has no such mode. @throws when it refuses */
export const chooseMode = async (
  rpc: Rpc,
  { id, setup }: OpenSession,
  modeId: string,
  { sessionMs }: AcpDeadlines,
): Promise<void> => {
  if (setup.modes?.availableModes.some((mode) => mode.id === modeId) === true)
    await rpc.call('session/set_mode', { sessionId: id, modeId }, sessionMs);
};

const modelsNamedAtMost = 10;

/** @throws when the agent does not offer the model, or refuses it */
export const chooseModel = async (
  rpc: Rpc,
  { id, setup }: OpenSession,
  model: string,
  { sessionMs }: AcpDeadlines,
): Promise<void> => {
  const option = optionOf(setup, 'model');
  const models = setup.models?.availableModels.map(({ modelId }) => modelId) ?? [];
  if (option !== undefined && choicesOfOption(option).includes(model)) {
    const chosen = { sessionId: id, configId: option.id, value: model };
    await rpc.call('session/set_config_option', chosen, sessionMs);
  } else if (models.includes(model)) {
    await rpc.call('session/set_model', { sessionId: id, modelId: model }, sessionMs);
  } else {
    const offered = [...choicesOfOption(option), ...models].slice(0, modelsNamedAtMost).join(', ');
    throw new Error(`it offers no model ${model}${offered === '' ? '' : `, but ${offered}`}`);
  }
};
