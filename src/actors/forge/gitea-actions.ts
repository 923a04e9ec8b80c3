import { z } from 'zod';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import { createJobLog, failureText, orWhy } from './job-log.ts';
import type { ForgeCheck } from './port.ts';

const atOnce = 50;
const runsSchema = z.object({
  workflow_runs: z.array(z.object({ id: z.number(), html_url: z.string().nullish() })).nullable(),
});
const jobsSchema = z.object({
  jobs: z.array(z.object({ id: z.number(), html_url: z.string().nullish() })).nullable(),
});
const statusesSchema = z.array(
  z.object({ id: z.number(), description: z.string().nullish(), target_url: z.string().nullish() }),
);

interface Job {
  readonly run: number;
  readonly id: number;
}

/** The address of a status may have no host. */
const pathOf = (url: string | null | undefined): string =>
  URL.canParse(url ?? '', 'http://forge') ? new URL(url ?? '', 'http://forge').pathname : '';

const isJob = /\/actions\/runs\/\d+\/jobs\/\d+$/;

/** What is known of a check that failed, and its job again. A check of Gitea's Actions is a status that leads to its job. */
export const createActions = (client: ForgeClient) => {
  const { ask } = client;
  const readLog = createJobLog(client);

  /** Null: no job of Actions, or the server is too old to have them in its API. */
  const findJob = async (url: string, sha: string, signal: AbortSignal): Promise<Job | null> => {
    const page = pathOf(url);
    if (!isJob.test(page)) return null;
    const asked = { path: 'actions/runs', query: { head_sha: sha, limit: atOnce } };
    const { workflow_runs: runs } = await ask({ ...asked, schema: runsSchema, signal });
    const run = runs?.find((each) => page.startsWith(`${pathOf(each.html_url)}/jobs/`));
    if (run === undefined) return null;
    const path = `actions/runs/${run.id}/jobs`;
    const { jobs } = await ask({ path, query: { limit: atOnce }, schema: jobsSchema, signal });
    const job = jobs?.find((each) => pathOf(each.html_url) === page);
    return job === undefined ? null : { run: run.id, id: job.id };
  };

  const logOf = async (url: string, sha: string, signal: AbortSignal): Promise<string> => {
    if (!isJob.test(pathOf(url))) return '';
    const job = await orWhy(() => findJob(url, sha, signal));
    if (job === null) return 'Its log is not there any more.';
    if ('why' in job) return `The log cannot be read: ${job.why}`;
    return readLog(String(job.id), signal);
  };

  const failure = async ({ id, name, url }: ForgeCheck, signal: AbortSignal): Promise<string> => {
    const [, number = '', sha = ''] = id.split(':');
    const asked = { path: `commits/${sha}/statuses`, query: { limit: atOnce } };
    const found = await ask({ ...asked, schema: statusesSchema, signal });
    const status = found.find((each) => String(each.id) === number);
    const log = await logOf(url ?? '', sha, signal);
    return failureText(name, url, [status?.description, log]);
  };

  const rerun = async ({ id, url }: ForgeCheck, signal: AbortSignal): Promise<boolean> => {
    const [, , sha = ''] = id.split(':');
    try {
      const job = await findJob(url ?? '', sha, signal);
      if (job === null) return false;
      const path = `actions/runs/${job.run}/jobs/${job.id}/rerun`;
      await ask({ method: 'POST', path, schema: z.unknown(), signal });
      return true;
    } catch (error) {
      // The server is older than Gitea 1.26, or the token may not.
      if (error instanceof ForgeRefusal && ['right', 'gone', 'refused'].includes(error.fault))
        return false;
      throw error;
    }
  };
  return { failure, rerun };
};
