import { useSignal } from '@preact/signals';
import { addDependency, deleteTask, edit, removeDependency } from '../../data/actions.ts';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { idNamed } from '../../model/search.ts';
import { Button } from '../../parts/button.tsx';
import { PriorityField, TextField } from '../../parts/field.tsx';
import { NoTask } from '../../parts/no-task.tsx';
import { Problem } from '../../parts/notice.tsx';
import { TaskLine } from '../../parts/task-link.tsx';
import { go, pathOf, taskPath } from '../../shell/router.ts';
import { labelsIn, TaskSuggestions } from './create-form.tsx';

const Dependencies = ({ task, fail }: { task: TaskView; fail: (message: string) => void }) => {
  const id = useSignal('');
  return (
    <section>
      <h2>Waits for</h2>
      {task.dependencies.length === 0 && <p class="quiet">It waits for no other task.</p>}
      <ul class="dependencies">
        {task.dependencies.map((each) => (
          <li key={each}>
            <TaskLine id={each} />
            <Button
              kind="quiet"
              label={`Remove the dependency on ${each}`}
              onPress={() => removeDependency(task.task_id, each)}
              onError={fail}
            >
              Remove
            </Button>
          </li>
        ))}
      </ul>
      <div class="actions">
        <input
          type="text"
          list="tasks"
          aria-label="Task that must be complete first"
          placeholder="Title or id"
          value={id.value}
          onInput={({ currentTarget }) => {
            id.value = currentTarget.value;
          }}
        />
        <Button
          onPress={async () => {
            await addDependency(task.task_id, idNamed(id.value.trim(), tasks.value));
            id.value = '';
          }}
          onError={fail}
        >
          Add dependency
        </Button>
      </div>
      <TaskSuggestions />
    </section>
  );
};

const Fields = ({ task, fail }: { task: TaskView; fail: (message: string) => void }) => {
  const [title, description] = [useSignal(task.title), useSignal(task.description)];
  const [priority, labels] = [useSignal(`${task.priority}`), useSignal(task.labels.join(', '))];
  const save = async (): Promise<void> => {
    await edit(task.task_id, {
      title: title.value,
      description: description.value,
      priority: Number(priority.value),
      labels: labelsIn(labels.value),
    });
    go(taskPath(task.task_id));
  };
  return (
    <form class="create" onSubmit={(event) => event.preventDefault()}>
      <TextField name="Title" value={title} maxLength={500} isFocused />
      <TextField name="What to do" value={description} rows={6} />
      <div class="fields">
        <PriorityField value={priority} />
        <TextField name="Labels, by commas" value={labels} />
      </div>
      <div class="actions end">
        <a class="button" href={taskPath(task.task_id)}>
          Back
        </a>
        <Button kind="primary" onPress={save} onError={fail}>
          Save
        </Button>
      </div>
    </form>
  );
};

export const EditView = ({ taskId }: { taskId: string }) => {
  const problem = useSignal<string | null>(null);
  const task = tasks.value.get(taskId);
  const fail = (message: string): void => {
    problem.value = message;
  };
  if (task === undefined) return <NoTask id={taskId} />;
  return (
    <div class="first">
      <h1>Edit {task.task_id}</h1>
      <Problem message={problem} />
      <Fields task={task} fail={fail} />
      <Dependencies task={task} fail={fail} />
      <section>
        <h2>Delete</h2>
        <Button
          kind="danger"
          sure="Delete it, this cannot be undone"
          onPress={async () => {
            await deleteTask(task.task_id);
            go(pathOf('board'));
          }}
          onError={fail}
        >
          Delete
        </Button>
      </section>
    </div>
  );
};
