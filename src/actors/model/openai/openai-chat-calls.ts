import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { isJsonObject, type JsonObject, parseJson } from '../../../machines/json.ts';
import type { ToolCall } from '../port.ts';
import { withOwnIds } from './openai-assembly.ts';

type CallPart = ChatCompletionChunk.Choice.Delta.ToolCall;

interface CallInProgress {
  readonly index: number;
  id: string;
  tool: string;
  arguments: string;
  readonly extras: Record<string, unknown>;
}

/** Some servers send the arguments as an object instead of JSON text. */
const argumentsIn = (part: CallPart): string => {
  const given: unknown = part.function?.arguments ?? '';
  return typeof given === 'string' ? given : JSON.stringify(given);
};

const isWhole = (text: string): boolean => isJsonObject(parseJson(text));

/** The members of a call that the protocol does not know. */
const extrasIn = ({ index, id, type, function: _, ...extras }: CallPart): JsonObject => extras;

/**
 * A piece may begin another call than the last one of its index. A new id alone does not: some
 * servers make one up for every piece. Nor does a name alone: some repeat it with every piece.
 */
const beginsAnother = (call: CallInProgress, part: CallPart): boolean => {
  const name = part.function?.name;
  if (!name || call.tool === '') return false;
  if (part.id && call.id !== '') return part.id !== call.id;
  return name !== call.tool || (argumentsIn(part).startsWith('{') && isWhole(call.arguments));
};

/**
 * Assembles tool calls from their pieces. Some servers leave the index out, others give several
 * calls the same one.
 */
export const createChatCalls = () => {
  const calls: CallInProgress[] = [];
  const lastOfIndex = new Map<number, CallInProgress>();
  const byId = new Map<string, CallInProgress>();

  const callOf = (part: CallPart): CallInProgress => {
    const index = (part.index as number | undefined) ?? calls.at(-1)?.index ?? 0;
    const last = lastOfIndex.get(index);
    const known = part.id ? (byId.get(`${index}/${part.id}`) ?? last) : last;
    if (known !== undefined && !beginsAnother(known, part)) return known;
    const call = { index, id: '', tool: '', arguments: '', extras: {} };
    calls.push(call);
    lastOfIndex.set(index, call);
    return call;
  };
  const inOrder = (): readonly CallInProgress[] =>
    withOwnIds(calls.toSorted((one, other) => one.index - other.index));

  return {
    add: (part: CallPart): void => {
      const call = callOf(part);
      call.id ||= part.id ?? '';
      call.tool ||= part.function?.name ?? '';
      call.arguments += argumentsIn(part);
      Object.assign(call.extras, extrasIn(part));
      if (call.id !== '') byId.set(`${call.index}/${call.id}`, call);
    },
    count: (): number => calls.length,
    areWhole: (): boolean => calls.every((call) => isWhole(call.arguments)),
    list: (): readonly ToolCall[] =>
      inOrder().map(({ id, tool, arguments: text }) => ({ id, tool, arguments: text })),
    /** By the ids of `list`; undefined when no call has any. */
    extras: (): Readonly<Record<string, JsonObject>> | undefined => {
      const own = inOrder().filter(({ extras }) => Object.keys(extras).length > 0);
      return own.length === 0 ? undefined : Object.fromEntries(own.map((c) => [c.id, c.extras]));
    },
  };
};
