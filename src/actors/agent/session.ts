import type { Resume } from '../../machines/agent-context.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { repeatableTools } from '../tools/toolbox.ts';
import type { OpenWorkspace } from '../workspace/port.ts';
import { type Conversation, createConversation } from './conversation.ts';
import { systemPrompt } from './prompt.ts';
import type { RoleProfile } from './roles.ts';
import type { BegunCall, Steps } from './steps.ts';

/** What one attempt works with, in this process. */
export interface Session {
  readonly task: TrackedTask;
  readonly profile: RoleProfile;
  readonly place: OpenWorkspace;
  readonly system: string;
  readonly conversation: Conversation;
  readonly steps: Steps;
}

interface SessionInput {
  readonly task: TrackedTask;
  readonly profile: RoleProfile;
  readonly place: OpenWorkspace;
  readonly steps: Steps;
  /** How many turns the attempt has taken, and where it goes on. */
  readonly turns: number;
  readonly resumeAt: Resume['at'];
}

/** What was said before a turn, if it was said: the turn itself may still say it for the first time. */
const replayMessages = (conversation: Conversation, steps: Steps, turn: number): void => {
  const thought = steps.thought(turn);
  if (thought !== null) conversation.hear(turn, thought.said);
};

/** What the model was told before a turn, and that older things were left out then, in the order in which it was. */
const replayTurnStart = (conversation: Conversation, steps: Steps, turn: number): void => {
  const compaction = steps.compaction(turn);
  const kept = compaction?.kept?.compaction;
  if (kept !== undefined && compaction?.heard === false) conversation.compact(kept);
  replayMessages(conversation, steps, turn);
  if (kept !== undefined && compaction?.heard === true) conversation.compact(kept);
};

/** The conversation as it was when the attempt came to where it goes on: the answers that counted and their results. */
const rebuildConversation = (first: string, { steps, turns, resumeAt }: SessionInput): Conversation => {
  const conversation = createConversation(first);
  for (let turn = 1; turn <= turns; turn += 1) {
    const thought = steps.thought(turn);
    if (thought?.answer == null) throw new Error(`turn ${turn} of this attempt is not in the journal`);
    replayTurnStart(conversation, steps, turn);
    conversation.answer(thought.answer);
    const isOpen = turn === turns && (resumeAt === 'acting' || resumeAt === 'awaitingApproval');
    if (isOpen) continue;
    // In the order of the calls, not of their beginning: reading ones run side by side.
    const results = conversation.pendingCalls().flatMap(({ id }) => steps.call(turn, id)?.result ?? []);
    if (results.length > 0) conversation.results(results);
  }
  const next = turns + 1;
  if (resumeAt === 'thinking') replayTurnStart(conversation, steps, next);
  else if (resumeAt === 'compacting') replayMessages(conversation, steps, next);
  return conversation;
};

export const createSession = (setting: SessionInput, first: string): Session => {
  const { task, profile, place, steps } = setting;
  const system = systemPrompt(profile, profile.tools);
  return { task, profile, place, system, steps, conversation: rebuildConversation(first, setting) };
};

/** Calls of the last turn that were begun, whose results nobody knows, and that must not just be made again. */
export const unclearCalls = ({ steps, turns, resumeAt }: SessionInput): readonly BegunCall[] =>
  resumeAt === 'acting'
    ? steps.calls(turns).filter(({ call, result }) => result === null && !repeatableTools.has(call.tool))
    : [];
