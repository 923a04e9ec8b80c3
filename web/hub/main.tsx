import '../styles/tokens.css';
import '../styles/base.css';
import '../styles/parts.css';
import '../styles/shell.css';
import './hub.css';
import { signal } from '@preact/signals';
import { render } from 'preact';
import type { HubProject } from '../../src/http/hub/hub-server.ts';
import type { TaskView } from '../data/tasks.ts';
import { oneLine } from '../model/format.ts';
import { needing } from '../model/order.ts';
import { lookOf, whyOf } from '../model/state.ts';
import { Icon, Mark } from '../parts/icon.tsx';
import { Login } from '../views/login/login.tsx';
import { askHub, enter, leave } from './sign-in.ts';

type Shown =
  | { readonly state: 'checking' }
  | { readonly state: 'out'; readonly message: string | null }
  | { readonly state: 'in' };

const shown = signal<Shown>({ state: 'checking' });
const projects = signal<readonly HubProject[]>([]);
/** What needs a person, by project; of those whose server runs. */
const needs = signal<ReadonlyMap<string, readonly TaskView[]>>(new Map());
const problem = signal<string | null>(null);

const readEveryMs = 5_000;
const tasksAtMost = 1_000;

const pathOf = (slug: string): string => `/p/${encodeURIComponent(slug)}/`;

/** Signs in again where the token of this tab is over. */
const ask = async (path: string, init?: RequestInit): Promise<Response> => {
  const response = await askHub(path, init);
  if (response.status !== 401) return response;
  const { refused } = await enter('');
  if (refused === null) return askHub(path, init);
  shown.value = { state: 'out', message: refused };
  return response;
};

const needsOf = async ({ slug }: HubProject): Promise<readonly TaskView[]> => {
  const params = { limit: tasksAtMost, order: 'newest' };
  const response = await ask(`${pathOf(slug)}a2a/execute`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'list', params }),
  });
  const answer = (await response.json()) as { result?: { tasks?: readonly TaskView[] } };
  const tasks = answer.result?.tasks ?? [];
  return needing(
    new Map(tasks.map((task) => [task.task_id, { ...task, title: oneLine(task.title) }])),
  );
};

const read = async (): Promise<void> => {
  const response = await ask('/hub/projects');
  if (!response.ok) return;
  const answer = (await response.json()) as { projects: readonly HubProject[] };
  projects.value = answer.projects;
  const running = answer.projects.filter((each) => each.running);
  const found = await Promise.all(
    running.map(async (each) => [each.slug, await needsOf(each).catch(() => [])] as const),
  );
  needs.value = new Map(found);
};

const follow = async (): Promise<void> => {
  if (shown.value.state === 'in' && !document.hidden)
    problem.value = await read().then(
      () => null,
      () => 'The hub does not answer. In a terminal: agent open',
    );
  setTimeout(() => void follow(), readEveryMs);
};

const signOut = async (): Promise<void> => {
  await leave().catch(() => null);
  shown.value = { state: 'out', message: 'You are signed out.' };
};

const drop = async (slug: string): Promise<void> => {
  await ask(`/hub/projects/${encodeURIComponent(slug)}`, { method: 'DELETE' });
  await read();
};

const stateOf = ({ gone, running }: HubProject): string =>
  gone === true ? 'its folder is gone' : running ? 'running' : 'stopped; opening it starts it';

const ProjectRow = ({ project }: { project: HubProject }) => (
  <li class="hub-project">
    {project.gone === true ? (
      <>
        <strong>{project.slug}</strong>
        <button type="button" class="link" onClick={() => void drop(project.slug)}>
          Remove from the list
        </button>
      </>
    ) : (
      <a href={pathOf(project.slug)}>
        <strong>{project.slug}</strong>
      </a>
    )}
    <span class="quiet small">{stateOf(project)}</span>
    <span class="quiet small">{oneLine(project.project)}</span>
  </li>
);

const NeedLine = ({ slug, task }: { slug: string; task: TaskView }) => {
  const { icon, tone, word } = lookOf(task);
  return (
    <li class="hub-need">
      <Icon name={icon} tone={tone} />
      <span class={`kind tone-${tone}`}>{word}</span>
      <a href={`${pathOf(slug)}#/task/${encodeURIComponent(task.task_id)}`}>{task.title}</a>
      <span class="quiet small">{slug}</span>
      <span class="quiet small">{whyOf(task, undefined, new Map())}</span>
    </li>
  );
};

const Front = () => {
  const all = [...needs.value].flatMap(([slug, tasks]) => tasks.map((task) => ({ slug, task })));
  return (
    <main class="hub">
      <header>
        <Mark /> <strong>All projects</strong>
        <button type="button" class="link quiet small" onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      {problem.value !== null && <p role="alert">{problem.value}</p>}
      <h1>Needs you</h1>
      {all.length === 0 ? (
        <p class="quiet">Nothing in the projects that run.</p>
      ) : (
        <ul>
          {all.map(({ slug, task }) => (
            <NeedLine key={`${slug} ${task.task_id}`} slug={slug} task={task} />
          ))}
        </ul>
      )}
      <h1>Projects</h1>
      <ul>
        {projects.value.map((project) => (
          <ProjectRow key={project.slug} project={project} />
        ))}
      </ul>
    </main>
  );
};

const Page = () => {
  const { value } = shown;
  if (value.state === 'out') return <Login message={value.message} />;
  return value.state === 'in' ? <Front /> : null;
};

/** Takes the code out of the address, before anything else can see it. */
const takeCode = (): string => {
  const code = new URLSearchParams(location.hash.slice(1)).get('c');
  if (code !== null) history.replaceState(null, '', '/');
  return code ?? '';
};

const start = async (): Promise<void> => {
  const { refused } = await enter(takeCode()).catch(() => ({
    refused: 'The hub does not answer.',
  }));
  shown.value = refused === null ? { state: 'in' } : { state: 'out', message: refused };
  if (refused === null) await read().catch(() => null);
};

const root = document.getElementById('page');
if (root !== null)
  void start().then(() => {
    root.replaceChildren();
    render(<Page />, root);
    setTimeout(() => void follow(), readEveryMs);
  });
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#c=')) void start();
});
