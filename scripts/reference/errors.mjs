import { anyKeyRemedy } from '../../build/cli/config/providers.js';
import { exitCodeOf } from '../../build/cli/output/exit-codes.js';
import { envelopeErrors, errorStatuses, requestErrors } from '../../build/http/error-table.js';
import { describeRefusal, refusal } from '../../build/machines/errors.js';
import { failureCodes } from '../../build/machines/task.js';
import { code, described, page, table } from './markdown.mjs';

/** Sample facts of each error; the real code makes the message from them. */
const examples = {
  task_not_found: { task_id: 'bd-a1b2' },
  dependencies_unmet: { task_id: 'bd-a1b2', unmet: ['bd-c3d4'] },
  dependency_cycle: { cycle: ['bd-a1b2', 'bd-c3d4', 'bd-a1b2'] },
  already_running: { task_id: 'bd-a1b2', attempt: 1 },
  event_not_allowed: { task_id: 'bd-a1b2', event: 'retry', state: 'complete', allowed: ['reopen'] },
  role_unknown: { role: 'enginer' },
  queue_full: { limit: 10000, retry_after_seconds: 10 },
  credential_missing: { variable: 'OPENAI_API_KEY', remedy: anyKeyRemedy },
  tracker_unavailable: { detail: 'bd ended with 1', remedy: "run 'bd doctor'" },
  tracker_conflict: { task_id: 'bd-a1b2', holder: 'maria' },
  stale_attempt: { task_id: 'bd-a1b2', attempt: 1, live_attempt: 2 },
  forbidden: { needs: 'run', name: 'ana', rights: 'read' },
  project_refused: {
    path: '/home/maria',
    problem: 'is your home folder, with keys that no agent may read',
    remedy: 'go to the folder of your project, or name it with --project',
  },
  invalid_params: {
    fields: [{ path: 'options.max_turns', problem: 'expected an integer from 1 to 1000' }],
  },
  internal: { detail: null },
};

const failures = {
  budget_exceeded: [
    'a limit of turns, tokens or cost is reached',
    'raise the limit, or make the task smaller',
  ],
  timed_out: [
    'the attempt took too long, or nobody answered a question',
    'raise the limit, or answer in time',
  ],
  loop_detected: [
    'the agent made the same call with the same result again and again',
    'say more in the task',
  ],
  model_failed: [
    'the model or the assistant failed, gave up, or did not finish',
    'read the message; `agent doctor --model` tests the provider',
  ],
  tool_failed: ['the tools could not be run', 'read the log of the server'],
  verify_failed: ['a verify command did not pass', 'see its output in `agent logs`'],
  output_truncated: [
    'the answers of the model were cut at their token limit',
    'raise `api.max_tokens`',
  ],
  crash_loop: [
    'the server died again and again while the attempt ran',
    'read the log of the server, then `agent retry`',
  ],
  internal: ['an error of the server', 'read the log of the server'],
};

const requests = {
  invalid_request: 'the request is not HTTP, or a part of it cannot be read',
  unauthorized: 'the token is missing or wrong',
  forbidden: 'Host, Origin or another header shows that the request comes from somewhere else',
  not_found: 'there is no such path',
  method_not_allowed: 'the address takes another HTTP method; `Allow` names it',
  request_timeout: 'the request did not arrive in time',
  payload_too_large: 'the body is larger than 1 MiB',
  uri_too_long: 'the address is longer than 2 KiB',
  unsupported_media_type: 'the body is not application/json',
  too_many_failures: 'too many requests with a wrong token; wait as long as `Retry-After` says',
  too_many_requests: 'more requests per second than `server.max_requests_per_second`',
  headers_too_large: 'the headers are larger than 16 KiB',
};

const envelopes = {
  parse_error: 'the body is not JSON',
  invalid_request: 'the body is not a JSON-RPC 2.0 request',
  method_not_found: 'there is no such method',
};

const refusals = () =>
  described('refusals', Object.keys(errorStatuses), examples).map(([name, facts]) => [
    code(name),
    errorStatuses[name].rpc,
    errorStatuses[name].http,
    exitCodeOf(name),
    describeRefusal(refusal(name, facts)),
    Object.keys(facts).map(code).join(', '),
  ]);

export const errorsPage = () =>
  page(
    'Errors',
    '`src/machines/errors.ts`, `src/http/error-table.ts` and `src/cli/output/exit-codes.ts`',
    [
      `\`\`\`console
$ agent show bd-nowhere
agent: task bd-nowhere does not exist; 'agent list --all' shows the tasks
$ echo $?
3
\`\`\``,
      'The same error has one name on every face: JSON-RPC carries it as `error.data.code`, other routes as `error.code`, the\n' +
        'command line with `--json` as `error.code`. Programs test the name and the facts, never the message.',
      `## Refusals

The server refused a request; nothing changed. The message is an example.

${table(['name', 'JSON-RPC', 'HTTP', 'exit code', 'message', 'facts'], refusals())}`,
      `## Failures of an attempt

The task is \`failed\`; \`agent show\` prints the name and the message. \`agent retry\` starts another attempt.

${table(
  ['name', 'what happened', 'what you can do'],
  described('failures', [...failureCodes], failures).map(([name, [what, help]]) => [
    code(name),
    what,
    help,
  ]),
)}`,
      `## Requests that reach no method

${table(
  ['name', 'HTTP', 'what happened'],
  described('requests', Object.keys(requestErrors), requests).map(([name, what]) => [
    code(name),
    requestErrors[name],
    what,
  ]),
)}

Errors of the JSON-RPC envelope:

${table(
  ['name', 'JSON-RPC', 'HTTP', 'what happened'],
  described('envelope', Object.keys(envelopeErrors), envelopes).map(([name, what]) => [
    code(name),
    envelopeErrors[name].rpc,
    envelopeErrors[name].http,
    what,
  ]),
)}`,
    ],
  );
