import type { StateValueFrom } from 'xstate';
import type { AgentContext, Resume } from './agent-context.ts';
import type { agentMachine } from './agent-machine.ts';
import { isTooLong } from './agent-setup.ts';
import type { taskMachine } from './task-machine.ts';

/** The paths of the states that have no states of their own. */
type Leaf<Value> = Value extends string
  ? Value
  : { [Key in keyof Value & string]: `${Key}.${Leaf<NonNullable<Value[Key]>>}` }[keyof Value & string];
type Parent = 'queued' | 'started' | 'started.telling';
export type TaskLeaf = Exclude<Leaf<StateValueFrom<typeof taskMachine>>, Parent>;

/**
 * What the start of a server does with a task that an earlier one left in a state (DESIGN 3.5):
 * - `rest`: nothing; somebody must ask first
 * - `repeat`: its work is begun again; all of it may be done twice
 * - `resume`: its agent goes on where it was, by `agentRestart`
 * - `wait`: until its deadline, which is absolute and may have passed
 * - `never`: nobody is left in it, for it is left in the moment in which it is entered
 */
export type OnRestart = 'rest' | 'repeat' | 'resume' | 'wait' | 'never';

/** Total: a state of the chart that is not in it does not compile. */
export const taskRestart: Readonly<Record<TaskLeaf, OnRestart>> = {
  'queued.idle': 'rest',
  'queued.refused': 'rest',
  'queued.checking': 'repeat',
  'queued.existing': 'never',
  'queued.ready': 'never',
  'queued.free': 'never',
  'queued.equipped': 'never',
  'queued.asking': 'repeat',
  'queued.waitingForSlot': 'repeat',
  'queued.backingOff': 'wait',
  'queued.releasing': 'repeat',
  'queued.cancelling': 'repeat',
  'queued.closing': 'repeat',
  'queued.reopening': 'repeat',
  'started.claiming': 'repeat',
  'started.working': 'resume',
  'started.verifying': 'repeat',
  'started.recording': 'repeat',
  'started.merging': 'repeat',
  'started.closing': 'repeat',
  'started.failing': 'repeat',
  'started.cancelling': 'repeat',
  'started.standingDown': 'repeat',
  'started.yielding': 'repeat',
  'started.telling.claiming': 'wait',
  'started.telling.recording': 'wait',
  'started.telling.merging': 'wait',
  'started.telling.closing': 'wait',
  'started.telling.failing': 'wait',
  'started.telling.cancelling': 'wait',
  complete: 'rest',
  failed: 'rest',
  cancelled: 'rest',
};

type AgentLeaf = StateValueFrom<typeof agentMachine>;

/** Where an agent goes on that an earlier process left in a state; `over`: it had ended, and only nobody was told. */
export const agentRestart: Readonly<
  Record<AgentLeaf, Resume['at'] | 'over' | ((context: AgentContext) => Resume['at'])>
> = {
  preparing: ({ resumeAt }) => resumeAt,
  considering: null,
  thinking: 'thinking',
  compacting: 'compacting',
  pausing: (context) => (isTooLong(context) ? 'compacting' : 'thinking'),
  acting: 'acting',
  delegating: 'delegating',
  awaitingInput: 'awaitingInput',
  awaitingApproval: 'awaitingApproval',
  returning: 'returning',
  awaitingDecision: 'awaitingDecision',
  done: 'over',
  failed: 'over',
};
