import { z } from 'zod';
import { httpUrl } from './config-values.ts';

const ownerAndName = z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'expected owner/name');

/** The forge, and when work is published there. */
export const forgeSection = z
  .strictObject({
    type: z
      .enum(['github', 'gitea'])
      .default('github')
      .describe('the kind of forge; gitea: Gitea or Forgejo'),
    api_url: httpUrl
      .default('https://api.github.com')
      .describe(
        'its API; of GitHub Enterprise https://<host>/api/v3, of Gitea https://<host>/api/v1',
      ),
    repository: ownerAndName
      .optional()
      .describe('owner/name; unset: as the address of the remote says'),
    remote: z
      .string()
      .min(1)
      .regex(/^[^-]/, 'must not begin with -')
      .default('origin')
      .describe('the remote that branches of pull requests are pushed to, or its address'),
    token_env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of a variable')
      .optional()
      .describe(
        'variable with a token that may push and open pull requests; unset: GITHUB_TOKEN, then GH_TOKEN; of Gitea GITEA_TOKEN',
      ),
    webhook_secret_env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of a variable')
      .optional()
      .describe(
        'variable with the secret of a webhook of the forge, 16 characters or more; set, POST /forge/webhook takes its deliveries',
      ),
    publish: z
      .enum(['never', 'when_complete'])
      .default('never')
      .describe(
        'when work is published by itself: never, so a person does (agent publish), or when its task is complete; then workspace.merge must be none',
      ),
    draft: z.boolean().default(false).describe('whether pull requests are opened as drafts'),
    on_checks: z
      .enum(['fix', 'ask', 'ignore'])
      .default('fix')
      .describe(
        'what a failed check does: another attempt mends it (fix), a person is asked (agent publish <id> --fix), or nothing',
      ),
    on_comments: z
      .enum(['fix', 'ask'])
      .default('fix')
      .describe(
        'what a comment or review of somebody who may push does: another attempt answers it, or a person is asked',
      ),
    max_rounds: z
      .int()
      .min(0)
      .max(20)
      .default(3)
      .describe('attempts that checks and comments together may ask for; then a person is asked'),
    authors: z
      .array(z.string().min(1).max(100))
      .max(100)
      .default([])
      .describe('logins whose comments count, beside those of people who may push'),
    merge: z
      .enum(['never', 'when_green', 'queue'])
      .default('never')
      .describe(
        "who merges: a person (never), the server when checks are green and nobody asks for changes (when_green), or the forge's own auto-merge or merge queue",
      ),
    link: httpUrl
      .optional()
      .describe(
        'address at which others find the recording of a task, with {task_id} for its id; it is in the text of pull requests',
      ),
    poll_seconds: z
      .int()
      .min(1)
      .max(3_600)
      .default(10)
      .describe(
        'shortest pause between two looks at a pull request; while nothing moves, pauses grow to 300 s',
      ),
    checks_wait_seconds: z
      .int()
      .min(0)
      .max(86_400)
      .default(120)
      .describe('after so long a head without checks has none'),
  })
  .prefault({});

/** Issues that the server keeps tasks in step with. */
export const trackerSources = z
  .array(
    z.strictObject({
      type: z.enum(['github']).default('github').describe('the kind of forge'),
      repository: ownerAndName
        .optional()
        .describe('owner/name, at forge.api_url; unset: the repository of the forge'),
      labels: z
        .array(
          z
            .string()
            .min(1)
            .max(100)
            .regex(/^[^,]+$/, 'must not have a comma'),
        )
        .max(20)
        .default([])
        .describe('an issue has all of them; none: every open issue'),
      write_back: z
        .enum(['comment', 'none'])
        .default('none')
        .describe(
          'comment: one comment below the issue says what became of it, and is edited; none: nothing',
        ),
    }),
  )
  .max(20)
  .default([])
  .describe(
    'where tasks come from: open issues of a forge become tasks, and the server keeps them in step',
  );
