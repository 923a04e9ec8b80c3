import type { ShownCall, Thought } from '../../machines/agent-context.ts';
import type { ThinkInput } from '../../machines/agent-selectors.ts';
import type { ToolCall } from '../model/port.ts';
import { costOf } from '../model/price.ts';
import type { CallOutcome, ModelCall, ModelCallPorts } from './model-call.ts';
import type { Session } from './session.ts';
import { maxShownLength } from './tool-calls.ts';
import type { ModelAnswer } from './turn-steps.ts';

const nudgeTexts = {
  silent:
    'You answered without calling a tool. Go on with the task, or call finish when you are done.',
  cut: 'Your answer was cut at its limit of length, so none of its calls was made. Go on in smaller steps: think shorter, and make long files in several pieces.',
} as const;
const answerTexts = {
  person: (text: string) => `A person answers:\n\n${text}`,
  nobody: (text: string) => `Nobody answered in time. This counts as the answer:\n\n${text}`,
  check: (text: string) =>
    `Your work is not accepted yet. ${text}\n\nFix it, then call finish again.`,
} as const;

const shownCall = ({ mcp }: Session, { id, tool, arguments: text }: ToolCall): ShownCall => {
  const change = mcp.changeOf(tool);
  return {
    call_id: id,
    tool,
    arguments: text.slice(0, maxShownLength),
    ...(change === null ? {} : { change }),
  };
};

const thoughtKind = ({ truncated, calls }: ModelAnswer) => {
  if (truncated) return 'truncated' as const;
  return calls.length > 0 ? ('calls' as const) : ('answer' as const);
};

const toldText = (text: string): string =>
  `A person says, while you work:\n\n${text}\n\nTake it into account, and go on; call finish when you are done.`;

const messagesBefore = ({ nudge, answer, told }: ThinkInput): readonly string[] => [
  ...(nudge === null ? [] : [nudgeTexts[nudge]]),
  ...(answer?.text == null ? [] : [answerTexts[answer.from](answer.text)]),
  ...told.map(toldText),
];

/** Takes one turn. An answer in the journal is used; the model is not asked again. */
export const createThink = (
  callModel: ModelCall,
  { priceFor }: Pick<ModelCallPorts, 'priceFor'>,
) => {
  const callAsStep = async (
    session: Session,
    input: ThinkInput,
    said: readonly string[],
    signal: AbortSignal,
  ): Promise<CallOutcome> => {
    const { turn, maxTurns } = input;
    const { steps, conversation } = session;
    await steps.recordRequest(turn, said);
    // A compacted conversation is another request: the provider must not answer it as the first.
    const step = `think:${turn}${steps.compaction(turn) === null ? '' : ':compacted'}`;
    const request = { turn, maxTurns, step, messages: conversation.messages };
    const outcome = await callModel(session, input, request, signal);
    if (outcome.type === 'answered') await steps.recordAnswer(turn, said, outcome);
    return outcome;
  };

  return async (session: Session, input: ThinkInput, signal: AbortSignal): Promise<Thought> => {
    const { steps, conversation } = session;
    const said = steps.thought(input.turn)?.said ?? [
      ...session.takeNotes(),
      ...messagesBefore(input),
    ];
    conversation.addMessages(input.turn, said);
    const known = steps.thought(input.turn)?.answer ?? null;
    const outcome = known ?? (await callAsStep(session, input, said, signal));
    if (outcome.type === 'failed')
      return { kind: 'failed', failure: outcome.failure, spent: outcome.spent };
    conversation.addAnswer(outcome);
    const calls = conversation.pendingCalls().map((call) => shownCall(session, call));
    const costUsd = costOf(priceFor(input), outcome.usage);
    return { kind: thoughtKind(outcome), calls, ...outcome.usage, costUsd };
  };
};
