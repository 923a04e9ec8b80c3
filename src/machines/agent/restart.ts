import type { StateValueFrom } from 'xstate';
import type { AgentContext, Resume } from './agent-context.ts';
import type { agentMachine } from './agent-machine.ts';
import { isTooLong } from './agent-rules.ts';

type AgentLeaf = StateValueFrom<typeof agentMachine>;

/**
 * Where an agent of an earlier process resumes, by its saved state. `over`: it had ended, and its
 * task had not recorded that. A state without a row does not compile.
 */
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
  parked: ({ resumeAt }) => resumeAt,
  done: 'over',
  failed: 'over',
};
