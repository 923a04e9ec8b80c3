import type { Resume } from '../../machines/agent-context.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { OpenWorkspace } from '../workspace/port.ts';
import { type Conversation, createConversation } from './conversation.ts';
import { systemPrompt } from './prompt.ts';
import type { RoleProfile } from './roles.ts';
import type { BegunCall, Steps } from './steps.ts';
import { repeatableTools } from './tools/toolbox.ts';

/** What one attempt works with, in this process. */
export interface Desk {
  readonly task: TrackedTask;
  readonly profile: RoleProfile;
  readonly place: OpenWorkspace;
  readonly system: string;
  readonly conversation: Conversation;
  readonly steps: Steps;
}

interface Setting {
  readonly task: TrackedTask;
  readonly profile: RoleProfile;
  readonly place: OpenWorkspace;
  readonly steps: Steps;
  /** How many turns the attempt has taken, and where it goes on. */
  readonly turns: number;
  readonly resumeAt: Resume['at'];
}

/** The conversation as it was when the attempt came to where it goes on: the answers that counted and their results. */
const rebuilt = (first: string, { steps, turns, resumeAt }: Setting): Conversation => {
  const conversation = createConversation(first);
  for (let turn = 1; turn <= turns; turn += 1) {
    const thought = steps.thought(turn);
    if (thought?.answer == null) throw new Error(`turn ${turn} of this attempt is not in the journal`);
    conversation.hear(turn, thought.said);
    const calls = thought.answer.truncated ? [] : thought.answer.calls;
    conversation.answer(thought.answer.text, calls);
    const isOpen = turn === turns && (resumeAt === 'acting' || resumeAt === 'awaitingApproval');
    if (isOpen) continue;
    // In the order of the calls, not of their beginning: reading ones run side by side.
    const results = calls.flatMap(({ id }) => steps.call(turn, id)?.result ?? []);
    if (results.length > 0) conversation.results(results);
  }
  return conversation;
};

export const setDesk = (setting: Setting, first: string): Desk => {
  const { task, profile, place, steps } = setting;
  const system = systemPrompt(profile, profile.tools);
  return { task, profile, place, system, steps, conversation: rebuilt(first, setting) };
};

/** Calls of the last turn that were begun, whose results nobody knows, and that must not just be made again. */
export const unclearCalls = ({ steps, turns, resumeAt }: Setting): readonly BegunCall[] =>
  resumeAt === 'acting'
    ? steps.calls(turns).filter(({ call, result }) => result === null && !repeatableTools.has(call.tool))
    : [];
