import { useSignal } from '@preact/signals';
import { create, run } from '../../data/actions.ts';
import { tasks } from '../../data/tasks.ts';
import { roles } from '../../data/totals.ts';
import { Button } from '../../parts/button.tsx';
import { Problem } from '../../parts/notice.tsx';
import { go, taskPath } from '../../shell/router.ts';

const suggestedAtMost = 200;

export const TaskSuggestions = () => (
  <datalist id="tasks">
    {[...tasks.value.values()].slice(-suggestedAtMost).map(({ task_id, title }) => (
      <option key={task_id} value={task_id}>
        {title}
      </option>
    ))}
  </datalist>
);

const idsIn = (text: string): readonly string[] => text.split(/[\s,]+/).filter(Boolean);

export const CreateForm = () => {
  const [description, title, dependencies] = [useSignal(''), useSignal(''), useSignal('')];
  const [role, priority] = [useSignal(''), useSignal('2')];
  const problem = useSignal<string | null>(null);
  const fail = (message: string): void => {
    problem.value = message;
  };
  const save = async (): Promise<string> => {
    if (description.value.trim() === '') throw new Error('Write what to do first.');
    const ids = idsIn(dependencies.value);
    const { task_id } = await create({
      description: description.value,
      priority: Number(priority.value),
      ...(title.value.trim() === '' ? {} : { title: title.value.trim() }),
      ...(ids.length === 0 ? {} : { dependencies: ids }),
      ...(role.value === '' ? {} : { labels: [`role:${role.value}`] }),
    });
    return task_id;
  };
  const saveAndRun = async (): Promise<void> => {
    if (role.value === '') throw new Error('Choose a role first: it says who works on the task.');
    const id = await save();
    go(taskPath(id));
    await run([id], role.value);
  };
  return (
    <form class="create" onSubmit={(event) => event.preventDefault()}>
      <label>
        <span>What to do</span>
        <textarea
          rows={3}
          value={description.value}
          onInput={({ currentTarget }) => {
            description.value = currentTarget.value;
          }}
          onKeyDown={({ key, ctrlKey, metaKey }) => {
            if (key === 'Enter' && (ctrlKey || metaKey))
              void save().then(
                (id) => go(taskPath(id)),
                (error: Error) => fail(error.message),
              );
          }}
        />
      </label>
      <div class="fields">
        <label>
          <span>Title (optional)</span>
          <input
            type="text"
            maxLength={500}
            value={title.value}
            onInput={({ currentTarget }) => {
              title.value = currentTarget.value;
            }}
          />
        </label>
        <label>
          <span>Role</span>
          <select
            value={role.value}
            onChange={({ currentTarget }) => {
              role.value = currentTarget.value;
            }}
          >
            <option value="">not yet</option>
            {roles.value.map((each) => (
              <option key={each.role} value={each.role}>
                {each.role}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Waits for (ids)</span>
          <input
            type="text"
            list="tasks"
            value={dependencies.value}
            onInput={({ currentTarget }) => {
              dependencies.value = currentTarget.value;
            }}
          />
        </label>
        <label>
          <span>Priority</span>
          <select
            value={priority.value}
            onChange={({ currentTarget }) => {
              priority.value = currentTarget.value;
            }}
          >
            {['0, first', '1', '2', '3', '4, last'].map((name, value) => (
              <option key={name} value={`${value}`}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <TaskSuggestions />
      <Problem message={problem} />
      <div class="actions end">
        <Button onPress={saveAndRun} onError={fail}>
          Create and run
        </Button>
        <Button kind="primary" onPress={async () => go(taskPath(await save()))} onError={fail}>
          Create
        </Button>
      </div>
    </form>
  );
};
