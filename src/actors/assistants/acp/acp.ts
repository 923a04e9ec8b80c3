import { z } from 'zod';
import { messageOf } from '../../../machines/message-of.ts';
import { handToAcp } from '../hand-over.ts';
import type {
  Assistant,
  AssistantDialog,
  AssistantEvent,
  ConversationPorts,
  PermissionCall,
} from '../port.ts';
import { isTransient } from '../program.ts';
import { isRateLimit } from '../usage-meter.ts';
import { type AcpAgent, acpAgent } from './known-agents.ts';
import { createAcpRpc, type Rpc, RpcError } from './rpc.ts';
import { acpArguments, acpCallSchema, createUpdateReader, toolOf } from './updates.ts';
import { tokensIn } from './usage.ts';

interface AcpDeadlines {
  /** Programs from npm may take seconds to start. */
  readonly initializeMs: number;
  /** Opens, resumes or sets up a session. */
  readonly sessionMs: number;
}
const acpDeadlines: AcpDeadlines = { initializeMs: 60_000, sessionMs: 120_000 };

const agentInfoSchema = z.looseObject({
  protocolVersion: z.number(),
  agentCapabilities: z
    .looseObject({
      loadSession: z.boolean().nullish(),
      promptCapabilities: z
        .looseObject({ image: z.boolean().nullish().catch(null) })
        .nullish()
        .catch(null),
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

interface AcpCapabilities {
  readonly loads: boolean;
  readonly resumes: boolean;
  /** It takes images in a prompt. */
  readonly sees: boolean;
  /** It can use MCP servers over HTTP. */
  readonly speaksHttp: boolean;
}

interface SessionPlace {
  readonly cwd: string;
  readonly mcpServers: readonly object[];
}

const acpVersion = 1;

/** @throws when it does not answer, or speaks another version */
const initializeAcp = async (rpc: Rpc, { initializeMs }: AcpDeadlines) => {
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
  const { loadSession, mcpCapabilities, promptCapabilities, sessionCapabilities } =
    data.agentCapabilities ?? {};
  return {
    loads: loadSession === true,
    resumes: (sessionCapabilities?.resume ?? false) !== false,
    sees: promptCapabilities?.image === true,
    speaksHttp: mcpCapabilities?.http === true,
  } satisfies AcpCapabilities;
};

interface OpenSession {
  readonly id: string;
  readonly setup: Setup;
}

const emptySetup: Setup = {};

/** @throws when the agent opens no session */
const newSession = async (
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
const resumeSession = async (
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
const chooseMode = async (
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
const chooseModel = async (
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

const permissionRequestSchema = z.looseObject({
  sessionId: z.string(),
  toolCall: acpCallSchema,
  options: z.array(z.looseObject({ optionId: z.string(), kind: z.string() })).max(100),
});
type PermissionRequest = z.infer<typeof permissionRequestSchema>;

const permissionRequest = (params: unknown): PermissionRequest | null =>
  permissionRequestSchema.safeParse(params).data ?? null;

/** The call as a person sees it; `kind` is that of an earlier update, if the request has none. */
const permissionCall = ({ toolCall }: PermissionRequest, kind: string | null): PermissionCall => ({
  callId: toolCall.toolCallId,
  tool: toolOf(toolCall.kind ?? kind),
  arguments: acpArguments(toolCall),
});

const cancelledOutcome = { outcome: { outcome: 'cancelled' } };

/** Null when the agent offers none. Never allows more than this one call. */
const permissionOption = (
  { options }: PermissionRequest,
  allowed: boolean,
): PermissionRequest['options'][number] | null => {
  const kinds = allowed ? ['allow_once'] : ['reject_once', 'reject_always'];
  return (
    kinds
      .map((kind) => options.find((each) => each.kind === kind))
      .find((each) => each !== undefined) ?? null
  );
};

interface PermissionPorts {
  readonly askPermission: ConversationPorts['askPermission'];
  /** The kind of a call, from an earlier update; null when none had it. */
  readonly kindOf: (callId: string) => string | null;
  /** True while this session, and no other one, goes on. */
  readonly isOpen: (sessionId: string) => boolean;
  readonly cancelled: AbortSignal;
}

/** Answers `session/request_permission`; remembers which calls were allowed. */
const createPermissionAnswers = (ports: PermissionPorts) => {
  const { askPermission, kindOf, isOpen, cancelled } = ports;
  const allowedCalls = new Set<string>();
  const stopped = new Promise<false>((resolve) => {
    cancelled.addEventListener('abort', () => resolve(false), { once: true });
  });
  return {
    decide: async (params: unknown): Promise<object> => {
      const request = permissionRequest(params);
      if (request === null || cancelled.aborted || !isOpen(request.sessionId))
        return cancelledOutcome;
      const call = permissionCall(request, kindOf(request.toolCall.toolCallId));
      const allowed = await Promise.race([askPermission(call), stopped]);
      if (cancelled.aborted) return cancelledOutcome;
      const option = permissionOption(request, allowed);
      if (allowed && option !== null) allowedCalls.add(call.callId);
      return option === null
        ? cancelledOutcome
        : { outcome: { outcome: 'selected', optionId: option.optionId } };
    },
    /** @returns true once for a call that was allowed */
    takeAllowed: (callId: string): boolean => allowedCalls.delete(callId),
  };
};

const promptEndSchema = z.looseObject({ stopReason: z.string() });

const failedEvent = (message: string, retryable = false): AssistantEvent => ({
  type: 'failed',
  code: 'model_failed',
  message,
  retryable,
});

const stopReasons: Readonly<Record<string, string>> = {
  max_tokens: 'its answer was cut at the limit of tokens',
  max_turn_requests: 'it reached its own limit of model calls',
  refusal: 'the model refused to go on',
  cancelled: 'it ended the work as cancelled',
};

interface Opened extends OpenSession {
  /** True when the agent knows the session from before. */
  readonly isResumed: boolean;
}

const openAcpSession = async (
  rpc: Rpc,
  can: AcpCapabilities,
  { start, root, onEvent }: ConversationPorts,
  deadlines: AcpDeadlines,
): Promise<Opened> => {
  const mcpServers = handToAcp(start.servers ?? [], can.speaksHttp);
  const place = { cwd: root, mcpServers };
  if (start.session !== null)
    try {
      const known = { id: start.session, ...place };
      return { ...(await resumeSession(rpc, can, known, deadlines)), isResumed: true };
    } catch (error) {
      const message = `the session ${start.session} does not go on (${messageOf(error)}); a new one begins`;
      onEvent({ type: 'note', level: 'warn', message });
    }
  return { ...(await newSession(rpc, place, deadlines)), isResumed: false };
};

/** Leads one prompt of an agent of the Agent Client Protocol, from `initialize` to its answer. */
const converse = (
  agent: Pick<AcpAgent, 'usage' | 'askingMode' | 'ignoresServers' | 'errorPiece'>,
  deadlines: AcpDeadlines,
  ports: ConversationPorts,
): AssistantDialog => {
  const { start, prompts, send, end, onEvent, askPermission, mustAsk } = ports;
  const cancelled = new AbortController();
  const updates = createUpdateReader({
    onEvent,
    errorPiece: agent.errorPiece ?? null,
    onMade: (callId, tool) => {
      if (!mustAsk(tool) || permissions.takeAllowed(callId)) return;
      const problem = `it made a call (${tool}) without asking, though require_approval names it`;
      rpc.close(problem);
    },
  });
  let session: string | null = null;
  /** `session/load` repeats the whole conversation. */
  let listens = false;
  let isOver = false;

  const permissions = createPermissionAnswers({
    askPermission,
    kindOf: (callId) => updates.kindOf(callId),
    isOpen: (sessionId) => !isOver && sessionId === session,
    cancelled: cancelled.signal,
  });
  const rpc = createAcpRpc({
    send,
    onRequest: (method, params) =>
      method === 'session/request_permission' ? permissions.decide(params) : null,
    onNotification: (method, params) => {
      if (method === 'session/update' && listens && !isOver) updates.take(params);
    },
  });

  const fail = (message: string, isTemporary: boolean): void => {
    if (isRateLimit(message)) onEvent({ type: 'limited', resetsAt: null });
    onEvent(failedEvent(message, isTemporary));
  };
  const report = (answer: unknown): void => {
    const used = tokensIn(answer, agent.usage);
    const reason = promptEndSchema.safeParse(answer).data?.stopReason;
    const error = reason === 'end_turn' ? updates.providerError() : null;
    if (error !== null) fail(error, isTransient(error));
    else if (reason === 'end_turn') onEvent({ type: 'result', text: updates.lastMessage() });
    else if (!cancelled.signal.aborted)
      onEvent(failedEvent(stopReasons[reason ?? ''] ?? 'its answer gives no known reason to stop'));
    if (used !== null) onEvent({ type: 'used', since: 'run', used });
    else if (agent.usage !== 'untold' && !cancelled.signal.aborted) onEvent({ type: 'untold' });
  };
  const lead = async (): Promise<void> => {
    const can = await initializeAcp(rpc, deadlines);
    const opened = await openAcpSession(rpc, can, ports, deadlines);
    session = opened.id;
    onEvent({ type: 'session', id: opened.id });
    if (agent.askingMode !== null) await chooseMode(rpc, opened, agent.askingMode, deadlines);
    if (start.model !== null) await chooseModel(rpc, opened, start.model, deadlines);
    if (agent.ignoresServers === true && (start.servers ?? []).length > 0)
      onEvent({ type: 'note', level: 'warn', message: 'this agent does not use your MCP servers' });
    listens = true;
    const text = opened.isResumed ? prompts.resumed : prompts.fresh;
    const images = can.sees && !opened.isResumed ? (start.images ?? []) : [];
    const blocks = images.map(({ mediaType: mimeType, data }) => ({
      type: 'image',
      mimeType,
      data,
    }));
    const prompt = { sessionId: opened.id, prompt: [{ type: 'text', text }, ...blocks] };
    report(await rpc.call('session/prompt', prompt, null));
  };

  const done = lead()
    .catch((error: unknown) => {
      const isTemporary = error instanceof RpcError && error.isTemporary;
      if (!cancelled.signal.aborted && !isOver) fail(messageOf(error), isTemporary);
    })
    .finally(() => {
      isOver = true;
      end();
    });

  return {
    read: rpc.receive,
    cancel: () => {
      cancelled.abort();
      if (session === null) rpc.close('it was stopped');
      else rpc.notify('session/cancel', { sessionId: session });
    },
    close: (reason) => {
      isOver = true;
      rpc.close(reason);
    },
    done,
  };
};

/** An agent of the Agent Client Protocol: JSON-RPC lines on standard input and output. */
export const createAcp = (
  command: readonly [string, ...string[]],
  deadlines = acpDeadlines,
): Assistant => {
  const agent = acpAgent(command);
  return {
    name: 'acp',
    label: agent.name,
    variables: agent.variables,
    providers: agent.providers,
    settings: agent.settings,
    reportsCost: agent.reportsCost,
    tellsTokens: agent.usage !== 'untold',
    resumes: true,
    endsByExit: false,
    argv: () => agent.argv,
    needs: agent.needs,
    read: () => [],
    converse: (ports) => converse(agent, deadlines, ports),
  };
};
