// Creates a task, runs a role on it, prints what happens, and ends with 0 when it is complete.
//
//   npm install agent-task-server
//   node run-task.mjs engineer "Add a --json flag" [--model <name>]
//
// Run it in the folder of your project. A server is started when none runs.
import { CallError } from 'agent-task-server/client';
import { openProject } from 'agent-task-server/client/node';

const [role, description, , model] = process.argv.slice(2);
if (role === undefined || description === undefined) {
  console.error('usage: node run-task.mjs <role> <what to do> [--model <name>]');
  process.exit(2);
}

const words = {
  tool_start: ({ tool }) => `uses ${tool}`,
  status_update: ({ status, phase }) => `${status} (${phase})`,
  input_required: ({ question }) => `asks: ${question}`,
};

const asksPerson = ['input_required', 'approval_required'];

try {
  const server = await openProject('.');
  const { task_id } = await server.call('create', { description });
  try {
    await server.execute({ task_id, role, options: model === undefined ? {} : { model } });
  } catch (error) {
    // A run that is refused, as for an unknown role, leaves no task behind.
    await server.call('delete', { task_id });
    throw error;
  }
  for await (const { type, data } of server.stream(task_id, { after: 0 })) {
    const text = words[type]?.(data);
    if (text !== undefined) console.log(`${task_id} ${text}`);
    if (asksPerson.includes(type)) break;
  }
  const task = await server.wait(task_id);
  console.log(`${task_id} ${task.status}: ${task.result ?? task.error?.message ?? task.phase}`);
  if (task.awaiting !== undefined) console.log(`answer it with: agent respond ${task_id}`);
  process.exitCode = task.status === 'complete' ? 0 : 1;
} catch (error) {
  if (!(error instanceof CallError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
