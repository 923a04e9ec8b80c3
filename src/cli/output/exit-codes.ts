import type { ErrorCode } from '../../machines/errors.ts';

/** docs/reference/errors.md lists them. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  cancelled: 5,
  unavailable: 6,
  noCredential: 7,
  unauthorized: 8,
  unproven: 9,
  configuration: 78,
  timedOut: 124,
  interrupted: 130,
  terminated: 143,
} as const;

const byError: Readonly<Record<string, number>> = {
  task_not_found: exitCodes.notFound,
  dependencies_unmet: exitCodes.conflict,
  dependency_cycle: exitCodes.conflict,
  already_running: exitCodes.conflict,
  event_not_allowed: exitCodes.conflict,
  role_unknown: exitCodes.usage,
  queue_full: exitCodes.unavailable,
  credential_missing: exitCodes.noCredential,
  tracker_unavailable: exitCodes.unavailable,
  tracker_conflict: exitCodes.conflict,
  stale_attempt: exitCodes.conflict,
  forbidden: exitCodes.unauthorized,
  project_refused: exitCodes.configuration,
  invalid_params: exitCodes.usage,
  internal: exitCodes.failed,
} satisfies Record<ErrorCode, number>;

const byRequest: Readonly<Record<string, number>> = {
  unauthorized: exitCodes.unauthorized,
  too_many_failures: exitCodes.unauthorized,
  too_many_requests: exitCodes.unavailable,
  payload_too_large: exitCodes.usage,
  uri_too_long: exitCodes.usage,
  unsupported_media_type: exitCodes.usage,
};

/** An error without a row is a failure. */
export const exitCodeOf = (code: string): number =>
  byError[code] ?? byRequest[code] ?? exitCodes.failed;
