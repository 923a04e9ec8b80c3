import { type TaskView, taskViewSchema } from '../../../src/actors/journal/task-view.ts';

export const aTask = (over: Partial<TaskView>): TaskView =>
  taskViewSchema.parse({
    task_id: 'bd-a1b2',
    title: 'Mend the sum',
    description: 'Mend the sum',
    status: 'queued',
    phase: 'waiting_for_run',
    ready: true,
    attempt: 0,
    dependencies: [],
    unmet_dependencies: [],
    priority: 2,
    labels: [],
    created_at: '2026-11-22T11:56:00.000Z',
    updated_at: '2026-11-22T11:56:00.000Z',
    progress: 0,
    usage: {
      input_tokens: 0,
      output_tokens: 0,
      cached_tokens: 0,
      model_calls: 0,
      tool_calls: 0,
      turns: 0,
    },
    stream_url: '/stream/bd-a1b2',
    ...over,
  });
