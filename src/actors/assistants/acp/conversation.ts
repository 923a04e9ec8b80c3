import { z } from 'zod';
import { messageOf } from '../../../machines/message-of.ts';
import { handToAcp } from '../hand-over.ts';
import type { AssistantDialog, AssistantEvent, ConversationPorts } from '../port.ts';
import type { AcpAgent } from './known-agents.ts';
import { createPermissionAnswers } from './permission.ts';
import { createAcpRpc, type Rpc, RpcError } from './rpc.ts';
import {
  type AcpCapabilities,
  type AcpDeadlines,
  chooseMode,
  chooseModel,
  initializeAcp,
  newSession,
  type OpenSession,
  resumeSession,
} from './session.ts';
import { createUpdateReader } from './updates.ts';
import { tokensIn } from './usage.ts';

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
export const converse = (
  agent: Pick<AcpAgent, 'usage' | 'askingMode' | 'ignoresServers'>,
  deadlines: AcpDeadlines,
  ports: ConversationPorts,
): AssistantDialog => {
  const { start, prompts, send, end, onEvent, askPermission, mustAsk } = ports;
  const cancelled = new AbortController();
  const updates = createUpdateReader(onEvent, (callId, tool) => {
    if (!mustAsk(tool) || permissions.takeAllowed(callId)) return;
    const problem = `it made a call (${tool}) without asking, though require_approval names it`;
    rpc.close(problem);
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

  const report = (answer: unknown): void => {
    const used = tokensIn(answer, agent.usage);
    const reason = promptEndSchema.safeParse(answer).data?.stopReason;
    if (reason === 'end_turn') onEvent({ type: 'result', text: updates.lastMessage() });
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
    const prompt = { sessionId: opened.id, prompt: [{ type: 'text', text }] };
    report(await rpc.call('session/prompt', prompt, null));
  };

  const done = lead()
    .catch((error: unknown) => {
      const isTemporary = error instanceof RpcError && error.isTemporary;
      if (!cancelled.signal.aborted && !isOver) onEvent(failedEvent(messageOf(error), isTemporary));
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
