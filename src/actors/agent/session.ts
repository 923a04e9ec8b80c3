import type { Resume } from '../../machines/agent/agent-context.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { ModelMessage, ToolCall } from '../model/port.ts';
import { keepHeadAndTail } from '../process/head-tail-buffer.ts';
import type { CallResult } from '../tools/port.ts';
import { isRepeatable } from '../tools/toolbox.ts';
import type { OpenWorkspace } from '../workspace/port.ts';
import type { AttemptMcp } from './attempt-mcp.ts';
import { applyCompaction, type Compaction } from './compaction.ts';
import type { KeepWork } from './keep-work.ts';
import { createInstructions, type Instructions, type ReadProject } from './project-instructions.ts';
import { type RoleProfile, systemPrompt } from './prompt.ts';
import type { FirstMessage, TurnSteps } from './steps.ts';
import type { BegunCall, ModelAnswer } from './turn-steps.ts';

/** Append-only until it is compacted. */
interface Conversation {
  readonly messages: readonly ModelMessage[];
  /** Adds the messages before a turn; a second call for the same turn adds nothing. */
  addMessages(turn: number, texts: readonly string[]): void;
  /** Drops the calls of a truncated answer. */
  addAnswer(answer: ModelAnswer): void;
  addResults(results: readonly CallResult[]): void;
  compact(compaction: Compaction): void;
  pendingCalls(): readonly ToolCall[];
  repeats(): number;
}

/** A truncated answer is cut to this, enough for the model to recognise it. */
const cutTextBytes = 2 * 1024;

export const createConversation = ({
  text: firstText,
  images,
}: Pick<FirstMessage, 'text' | 'images'>): Conversation => {
  let messages: ModelMessage[] = [{ role: 'user', text: firstText, images }];
  let pending: readonly ToolCall[] = [];
  let last = '';
  let repeats = 0;
  let lastTurn = 0;

  const count = (result: CallResult): void => {
    const call = pending.find(({ id }) => id === result.callId);
    const signature = JSON.stringify([result.tool, call?.arguments, result.ok, result.text]);
    repeats = signature === last ? repeats + 1 : 1;
    last = signature;
  };

  return {
    get messages() {
      return messages;
    },
    addMessages: (turn, texts) => {
      if (turn <= lastTurn) return;
      lastTurn = turn;
      for (const text of texts) messages.push({ role: 'user', text });
    },
    addAnswer: ({ text, calls, truncated, reasoning }) => {
      pending = truncated ? [] : calls;
      // Some providers refuse an answer without text, and reasoning without the calls after it.
      if (truncated)
        messages.push({
          role: 'assistant',
          text: keepHeadAndTail(text, cutTextBytes).trim() || '(cut off)',
          calls: [],
        });
      else
        messages.push({
          role: 'assistant',
          text: calls.length === 0 && text.trim() === '' ? '(no answer)' : text,
          calls,
          reasoning,
        });
    },
    addResults: (results) => {
      for (const result of results) {
        count(result);
        messages.push({
          role: 'tool',
          callId: result.callId,
          tool: result.tool,
          text: result.text,
          ok: result.ok,
          images: result.images,
        });
      }
    },
    compact: (compaction) => {
      messages = applyCompaction(messages, compaction);
    },
    pendingCalls: () => pending,
    repeats: () => repeats,
  };
};

export interface Session {
  readonly task: TrackedTask;
  readonly profile: RoleProfile;
  readonly workspace: OpenWorkspace;
  readonly system: string;
  readonly conversation: Conversation;
  readonly steps: TurnSteps;
  readonly mcp: AttemptMcp;
  readonly keepWork: KeepWork;
  readonly withInstructions: Instructions;
  /** Messages for the next turn that is new; given once. */
  readonly takeNotes: () => readonly string[];
  readonly addNote: (text: string) => void;
}

interface SessionInput {
  readonly task: TrackedTask;
  readonly profile: RoleProfile;
  readonly workspace: OpenWorkspace;
  readonly steps: TurnSteps;
  readonly mcp: AttemptMcp;
  readonly keepWork: KeepWork;
  readonly first: FirstMessage;
  readonly readProject: ReadProject;
  readonly turns: number;
  readonly resumeAt: Resume['at'];
  /** Texts for the model, said before its next turn. */
  readonly notes: readonly string[];
}

const replayMessages = (conversation: Conversation, steps: TurnSteps, turn: number): void => {
  const thought = steps.thought(turn);
  if (thought !== null) conversation.addMessages(turn, thought.said);
};

/** Replays the messages and the compaction before a turn, in their original order. */
const replayTurnStart = (conversation: Conversation, steps: TurnSteps, turn: number): void => {
  const compaction = steps.compaction(turn);
  const kept = compaction?.kept?.compaction;
  if (kept !== undefined && compaction?.heard === false) conversation.compact(kept);
  replayMessages(conversation, steps, turn);
  if (kept !== undefined && compaction?.heard === true) conversation.compact(kept);
};

const rebuildConversation = ({ first, steps, turns, resumeAt }: SessionInput): Conversation => {
  const conversation = createConversation(first);
  for (let turn = 1; turn <= turns; turn += 1) {
    const thought = steps.thought(turn);
    if (thought?.answer == null)
      throw new Error(`turn ${turn} of this attempt is not in the journal`);
    replayTurnStart(conversation, steps, turn);
    conversation.addAnswer(thought.answer);
    const isOpen = turn === turns && (resumeAt === 'acting' || resumeAt === 'awaitingApproval');
    if (isOpen) continue;
    // In the order of the calls: read-only calls may begin in another order.
    const results = conversation
      .pendingCalls()
      .flatMap(({ id }) => steps.call(turn, id)?.result ?? []);
    if (results.length > 0) conversation.addResults(results);
  }
  const next = turns + 1;
  if (resumeAt === 'thinking') replayTurnStart(conversation, steps, next);
  else if (resumeAt === 'compacting') replayMessages(conversation, steps, next);
  return conversation;
};

/** Results of earlier calls ended with these. */
const instructionsSaid = ({ steps, turns }: SessionInput) =>
  Array.from({ length: turns + 1 }, (_, at) => steps.calls(at + 1))
    .flat()
    .flatMap(({ result }) => result?.instructions ?? []);

export const createSession = (input: SessionInput): Session => {
  const { task, profile, workspace, steps, mcp, keepWork } = input;
  let notes = input.notes;
  return {
    task,
    profile,
    workspace,
    // It names the tools, and these may change between turns.
    get system() {
      return systemPrompt(profile, [...profile.tools, ...mcp.tools().map(({ name }) => name)]);
    },
    steps,
    mcp,
    keepWork,
    conversation: rebuildConversation(input),
    withInstructions: createInstructions({
      root: workspace.root,
      readProject: input.readProject,
      earlier: [{ paths: [], bytes: input.first.instructionBytes }, ...instructionsSaid(input)],
    }),
    addNote: (text) => {
      notes = [...notes, text];
    },
    takeNotes: () => {
      const taken = notes;
      notes = [];
      return taken;
    },
  };
};

/**
 * Calls of the last turn that began, whose outcome is unknown, and that may not simply be repeated.
 */
export const unclearCalls = ({ steps, turns, resumeAt }: SessionInput): readonly BegunCall[] =>
  resumeAt === 'acting'
    ? steps.calls(turns).filter(({ call, result }) => result === null && !isRepeatable(call.tool))
    : [];
