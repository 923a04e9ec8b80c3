import { createExecutor, toolSpecs } from '../../../src/actors/agent/executor.ts';
import type { ToolCall } from '../../../src/actors/model/port.ts';
import { shippedRoles } from '../../../src/cli/roles/read-project-roles.ts';
import type { Role } from '../../../src/machines/task.ts';
import { createWorkbench } from './workbench.ts';

/** A tool call with its arguments as JSON, or as the text that is given. */
export const call = (id: string, tool: string, args: unknown): ToolCall => ({
  id,
  tool,
  arguments: typeof args === 'string' ? args : JSON.stringify(args),
});

export const finish = (id: string): ToolCall =>
  call(id, 'finish', { status: 'done', summary: 'all done' });

/** An executor of a role in its own workspace, and the calls that its observer saw. */
export const createToolRunner = async (role: Role = 'engineer') => {
  const bench = await createWorkbench();
  const observed: string[] = [];
  const executor = createExecutor({
    tools: shippedRoles()[role].tools,
    context: () => bench.context,
    observe: {
      start: ({ id }) => void observed.push(`start ${id}`),
      output: ({ id }, chunk) => void observed.push(`output ${id} ${chunk.trim()}`),
      end: (_, { callId, ok }) => void observed.push(`end ${callId} ${ok}`),
    },
  });
  return { ...bench, ...executor, specs: toolSpecs(shippedRoles()[role].tools), observed };
};
