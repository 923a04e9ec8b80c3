import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { create, run } from '../../data/actions.ts';
import { type NewImage, parts } from '../../data/later-parts.ts';
import { tasks } from '../../data/tasks.ts';
import { roles } from '../../data/totals.ts';
import { idNamed } from '../../model/search.ts';
import { Button } from '../../parts/button.tsx';
import { ChoiceField, PriorityField, TextField } from '../../parts/field.tsx';
import { Problem } from '../../parts/notice.tsx';
import { go, taskPath } from '../../shell/router.ts';

const suggestedAtMost = 200;

export const TaskSuggestions = () => (
  <datalist id="tasks">
    {[...tasks.value.values()].slice(-suggestedAtMost).map(({ task_id, title }) => (
      <option key={task_id} value={title}>
        {task_id}
      </option>
    ))}
  </datalist>
);

const idIn = (text: string): string => idNamed(text, tasks.value);

/** A title may hold commas when it is the only one. */
const idsIn = (text: string): readonly string[] =>
  [text.trim()]
    .map(idIn)
    .flatMap((id) => (id === text.trim() ? id.split(',') : [id]))
    .map((part) => idIn(part.trim()))
    .flatMap((id) => id.split(/\s+/))
    .filter(Boolean);
export const labelsIn = (text: string): readonly string[] =>
  text
    .split(',')
    .map((label) => label.trim())
    .filter(Boolean);
const linesIn = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

const useFields = () => ({
  title: useSignal(''),
  description: useSignal(''),
  dependencies: useSignal(''),
  role: useSignal(''),
  priority: useSignal('2'),
  labels: useSignal(''),
  verify: useSignal(''),
  images: useSignal<readonly NewImage[]>([]),
});

const save = async (fields: ReturnType<typeof useFields>): Promise<string> => {
  const title = fields.title.value.trim();
  const description = fields.description.value.trim() === '' ? title : fields.description.value;
  if (description === '') throw new Error('Write a title first.');
  const ids = idsIn(fields.dependencies.value);
  const role = fields.role.value;
  const labels = [...(role === '' ? [] : [`role:${role}`]), ...labelsIn(fields.labels.value)];
  const { task_id } = await create({
    description,
    priority: Number(fields.priority.value),
    ...(title === '' ? {} : { title }),
    ...(ids.length === 0 ? {} : { dependencies: ids }),
    ...(labels.length === 0 ? {} : { labels }),
    attachments: fields.images.value,
  });
  return task_id;
};

/** `isFocused`: the title has the focus at once. */
export const CreateForm = ({ isFocused = false }: { isFocused?: boolean }) => {
  const fields = useFields();
  const { title, description, dependencies, role, priority, labels, verify } = fields;
  const problem = useSignal<string | null>(null);
  const fail = (message: string): void => {
    problem.value = message;
  };
  const saving = useRef<Promise<string> | null>(null);
  /** A press that comes while the page of the task is not there yet makes no second task. */
  const saveOnce = (): Promise<string> => {
    saving.current ??= save(fields).catch((error: unknown) => {
      saving.current = null;
      throw error;
    });
    return saving.current;
  };
  const saveAlone = async (): Promise<void> => {
    if (linesIn(verify.value).length > 0)
      throw new Error('Verify commands are for a run: run it, or leave them out.');
    go(taskPath(await saveOnce()));
  };
  const saveAndRun = async (): Promise<void> => {
    if (role.value === '') throw new Error('Choose a role first.');
    const id = await saveOnce();
    go(taskPath(id));
    await run([id], role.value, linesIn(verify.value));
  };
  return (
    <form class="create" onSubmit={(event) => event.preventDefault()}>
      <TextField name="Title" value={title} maxLength={500} isFocused={isFocused} />
      <TextField name="What to do" value={description} rows={3} />
      <div class="fields">
        <ChoiceField
          name="Role"
          value={role}
          choices={[['', 'not yet'], ...roles.value.map((each) => [each.role, each.role] as const)]}
        />
        <TextField name="Waits for (titles or ids)" value={dependencies} list="tasks" />
        <PriorityField value={priority} />
        <TextField name="Labels, by commas" value={labels} />
      </div>
      <TextField name="Verify: commands that must pass, one a line" value={verify} rows={1} />
      <parts.Images images={fields.images} fail={fail} />
      <TaskSuggestions />
      <Problem message={problem} />
      <div class="actions end">
        <Button onPress={saveAndRun} onError={fail}>
          Create and run
        </Button>
        <Button kind="primary" onPress={saveAlone} onError={fail}>
          Create
        </Button>
      </div>
    </form>
  );
};
