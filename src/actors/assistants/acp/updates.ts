import { z } from 'zod';
import type { AssistantEvent } from '../port.ts';

const mostOpenCalls = 1_000;
/** The end of a message is its result. */
const longestUpdateText = 64 * 1024;

const textBlock = z.looseObject({ type: z.literal('text'), text: z.string() });
const contentSchema = z.union([
  z.looseObject({ type: z.literal('content'), content: z.unknown() }),
  z.looseObject({ type: z.literal('diff'), path: z.string() }),
  z.looseObject({ type: z.string() }),
]);
export const acpCallSchema = z.looseObject({
  toolCallId: z.string().max(1_000),
  title: z.string().nullish(),
  kind: z.string().nullish(),
  status: z.string().nullish(),
  content: z.array(contentSchema).nullish(),
  locations: z.array(z.looseObject({ path: z.string() })).nullish(),
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
});
export type AcpToolCall = z.infer<typeof acpCallSchema>;

/** codex-acp says this beside the protocol. */
const codexInfoSchema = z.looseObject({
  threadStatus: z.looseObject({ type: z.string() }).nullish().catch(null),
  error: z
    .looseObject({ message: z.string(), additionalDetails: z.string().nullish() })
    .nullish()
    .catch(null),
});

const updateSchema = z.discriminatedUnion('sessionUpdate', [
  z.looseObject({ sessionUpdate: z.literal('agent_message_chunk'), content: z.unknown() }),
  acpCallSchema.extend({ sessionUpdate: z.literal('tool_call') }),
  acpCallSchema.extend({ sessionUpdate: z.literal('tool_call_update') }),
  z.looseObject({
    sessionUpdate: z.literal('plan'),
    entries: z.array(z.looseObject({ content: z.string(), status: z.string() })),
  }),
  z.looseObject({
    sessionUpdate: z.literal('session_info_update'),
    _meta: z
      .looseObject({
        codex: codexInfoSchema.nullish().catch(null),
      })
      .nullish()
      .catch(null),
  }),
  z.looseObject({
    sessionUpdate: z.literal('usage_update'),
    cost: z.looseObject({ amount: z.number().nonnegative(), currency: z.string() }).nullish(),
  }),
]);
const paramsSchema = z.looseObject({ sessionId: z.string(), update: updateSchema });
type SessionUpdate = z.infer<typeof updateSchema>;

/** Our names for the kinds of tool calls. */
const toolsByKind: Readonly<Record<string, string>> = {
  read: 'read',
  edit: 'edit',
  execute: 'bash',
  search: 'grep',
};
export const toolOf = (kind: string | null | undefined): string =>
  toolsByKind[kind ?? 'other'] ?? kind ?? 'other';

const mcpInput = z.looseObject({ server: z.string(), tool: z.string() });
/** Such as `mcp__notes__add`, or `notes_add`. */
const plainName = /^[\w.-]{1,100}$/;

/** For people: agents have no kind for the tools of MCP servers. */
const shownTool = ({ kind, title, rawInput }: AcpToolCall): string => {
  const { data } = mcpInput.safeParse(rawInput);
  if (data !== undefined && plainName.test(`${data.server}${data.tool}`))
    return `mcp__${data.server}__${data.tool}`;
  const tool = toolOf(kind);
  return tool === 'other' && title != null && plainName.test(title) ? title : tool;
};

const jsonText = (value: unknown): string => JSON.stringify(value) ?? '';
export const acpArguments = ({ title, rawInput, locations }: AcpToolCall): string =>
  jsonText({
    ...(title == null ? {} : { title }),
    ...(rawInput === undefined ? {} : { input: rawInput }),
    ...(rawInput !== undefined || locations == null
      ? {}
      : { paths: locations.map(({ path }) => path) }),
  });

const updateText = (content: unknown): string => textBlock.safeParse(content).data?.text ?? '';
const callOutput = ({ content, rawOutput }: AcpToolCall): string => {
  const shown = (content ?? []).map((each) => ('content' in each ? updateText(each.content) : ''));
  const text = shown.filter((each) => each !== '').join('\n');
  if (text !== '' || rawOutput === undefined) return text;
  return typeof rawOutput === 'string' ? rawOutput : jsonText(rawOutput);
};

const changedPaths = (call: AcpToolCall, kind: string | null | undefined): readonly string[] => {
  const diffs = (call.content ?? []).flatMap((each) =>
    each.type === 'diff' && 'path' in each && typeof each.path === 'string' ? [each.path] : [],
  );
  const places = kind === 'edit' ? (call.locations ?? []).map(({ path }) => path) : [];
  return [...new Set([...diffs, ...places])];
};

const planLines = ({ entries }: Extract<SessionUpdate, { sessionUpdate: 'plan' }>): string => {
  const done = entries.filter(({ status }) => status === 'completed').length;
  const current = entries.find(({ status }) => status === 'in_progress')?.content;
  return `plan: ${done} of ${entries.length} done${current === undefined ? '' : `; now: ${current}`}`;
};

export interface UpdateReader {
  /** Parameters of `session/update`; unknown ones are ignored. */
  take(params: unknown): void;
  lastMessage(): string;
  /** The words of the provider's error that ended the turn, or null. */
  providerError(): string | null;
  /** The kind of a tool call that has begun and not ended; null for others. */
  kindOf(callId: string): string | null;
}

/** Some agents end a turn as done whose whole message is an error: `Error: 429 Too many requests`. */
const errorMessage = /^(?:API )?Error: (?=[45]\d\d\b)/;

export interface UpdatePorts {
  readonly onEvent: (event: AssistantEvent) => void;
  /** A call was made. */
  readonly onMade: (callId: string, tool: string) => void;
  /** The last piece of a turn begins so when it is an error of the provider; null: no such piece. */
  readonly errorPiece: RegExp | null;
}

/** Reads the updates of one session as events. */
export const createUpdateReader = ({ onEvent, onMade, errorPiece }: UpdatePorts): UpdateReader => {
  const open = new Map<string, AcpToolCall>();
  const ended = new Set<string>();
  let message = '';
  let isNewMessage = true;
  let lastPiece = '';
  let plan = '';
  /** The error of a turn of codex that failed; an empty one has no words. */
  let threadError: string | null = null;
  let lastError = '';

  const begin = (call: AcpToolCall): void => {
    isNewMessage = true;
    lastPiece = '';
    onEvent({
      type: 'tool_started',
      callId: call.toolCallId,
      tool: shownTool(call),
      arguments: acpArguments(call),
    });
  };
  const end = (call: AcpToolCall): void => {
    const { toolCallId, status, kind } = call;
    open.delete(toolCallId);
    if (ended.size >= mostOpenCalls) ended.clear();
    ended.add(toolCallId);
    const ok = status === 'completed';
    if (ok) onMade(toolCallId, toolOf(kind));
    onEvent({ type: 'tool_ended', callId: toolCallId, ok, output: callOutput(call) });
    if (ok) for (const path of changedPaths(call, kind)) onEvent({ type: 'changed', path });
  };
  /** Agents name the arguments when the call runs, often after its first update. */
  const takeCall = (update: AcpToolCall): void => {
    const { toolCallId } = update;
    const known = open.get(toolCallId);
    if (ended.has(toolCallId) || (known === undefined && open.size >= mostOpenCalls)) return;
    const given = Object.entries(update).filter(([, value]) => value != null);
    const call: AcpToolCall = { ...known, toolCallId, ...Object.fromEntries(given) };
    const isOver = call.status === 'completed' || call.status === 'failed';
    const hasBegun = known !== undefined && known.status !== 'pending';
    if (!hasBegun && call.status !== 'pending') begin(call);
    open.set(toolCallId, call);
    if (isOver) end(call);
  };
  const takeText = (text: string): void => {
    message = ((isNewMessage ? '' : message) + text).slice(-longestUpdateText);
    isNewMessage = false;
    lastPiece = text;
    onEvent({ type: 'text', text });
  };
  const takeInfo = ({ threadStatus, error }: z.infer<typeof codexInfoSchema>): void => {
    if (error != null) lastError = error.additionalDetails ?? error.message;
    if (threadStatus == null) return;
    threadError = threadStatus.type === 'systemError' ? lastError : null;
    // The words of the error follow as a message.
    if (threadError !== null) {
      isNewMessage = true;
      message = '';
    }
  };

  return {
    take: (params) => {
      const update = paramsSchema.safeParse(params).data?.update;
      switch (update?.sessionUpdate) {
        case 'agent_message_chunk':
          return takeText(updateText(update.content));
        case 'tool_call':
        case 'tool_call_update':
          return takeCall(update);
        case 'plan': {
          const text = planLines(update);
          if (text !== plan) onEvent({ type: 'note', level: 'info', message: text });
          plan = text;
          return;
        }
        case 'session_info_update':
          return takeInfo(update._meta?.codex ?? {});
        case 'usage_update':
          if (update.cost?.currency === 'USD')
            onEvent({ type: 'cost_so_far', usd: update.cost.amount, inputTokens: null });
      }
    },
    lastMessage: () => message,
    providerError: () => {
      if (threadError !== null) return message.trim() || threadError || 'it gave no reason';
      if (errorPiece?.test(lastPiece) === true) return lastPiece.replace(errorPiece, '').trim();
      const text = message.trim();
      return errorMessage.test(text) ? text.replace(errorMessage, '') : null;
    },
    kindOf: (callId) => open.get(callId)?.kind ?? null,
  };
};
