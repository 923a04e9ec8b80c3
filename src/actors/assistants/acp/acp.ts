import type { Assistant } from '../port.ts';
import { converse } from './conversation.ts';
import { acpAgent } from './known-agents.ts';
import { acpDeadlines } from './session.ts';

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
