import {
  describeRefusal,
  type ErrorCode,
  refusal,
  type ServiceError,
} from '../../machines/errors.ts';
import type { SchemaProblem } from '../schema-problems.ts';

/** JSON-RPC code, HTTP status and status of google.rpc, by the name of the error. */
const errorCodes = {
  TASK_NOT_FOUND: [-32001, 404, 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: [-32002, 400, 'FAILED_PRECONDITION'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32003, 400, 'FAILED_PRECONDITION'],
  UNSUPPORTED_OPERATION: [-32004, 400, 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: [-32005, 400, 'INVALID_ARGUMENT'],
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: [-32007, 400, 'FAILED_PRECONDITION'],
  VERSION_NOT_SUPPORTED: [-32009, 400, 'FAILED_PRECONDITION'],
  FORBIDDEN: [-32034, 403, 'PERMISSION_DENIED'],
  INVALID_PARAMS: [-32602, 400, 'INVALID_ARGUMENT'],
  METHOD_NOT_FOUND: [-32601, 404, 'NOT_FOUND'],
  METHOD_NOT_ALLOWED: [-32601, 405, 'UNIMPLEMENTED'],
  INTERNAL: [-32603, 500, 'INTERNAL'],
} as const;

export type A2aReason = keyof typeof errorCodes;

interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

const domain = 'a2a-protocol.org';
const type = (name: string): string => `type.googleapis.com/google.rpc.${name}`;

const plainErrors: ReadonlySet<A2aReason> = new Set([
  'FORBIDDEN',
  'INVALID_PARAMS',
  'METHOD_NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'INTERNAL',
]);

/** An error answer of A2A; both bindings show the same. */
export class A2aError extends Error {
  override readonly name = 'A2aError';
  readonly reason: A2aReason;
  readonly details: readonly object[];

  constructor(
    reason: A2aReason,
    message: string,
    {
      fields = [],
      ours,
    }: { readonly fields?: readonly FieldViolation[]; readonly ours?: ServiceError } = {},
  ) {
    super(message);
    this.reason = reason;
    this.details = [
      ...(plainErrors.has(reason) ? [] : [{ '@type': type('ErrorInfo'), reason, domain }]),
      ...(fields.length === 0 ? [] : [{ '@type': type('BadRequest'), fieldViolations: fields }]),
      ...(ours === undefined || ours.code === 'internal'
        ? []
        : [{ '@type': type('ErrorInfo'), reason: ours.code, domain: 'agent-task-server' }]),
    ];
  }
}

export const invalidParams = (field: string, description: string): A2aError =>
  new A2aError('INVALID_PARAMS', `${field}: ${description}`, { fields: [{ field, description }] });

export const invalidProblems = (problems: readonly SchemaProblem[]): A2aError => {
  const fields = problems.map(({ path, problem }) => ({
    field: path.map(String).join('.') || 'params',
    description: problem,
  }));
  const message = fields.map(({ field, description }) => `${field}: ${description}`).join('; ');
  return new A2aError('INVALID_PARAMS', message, { fields });
};

export const wrongTypeError = (expected: string): A2aError =>
  new A2aError('CONTENT_TYPE_NOT_SUPPORTED', `send Content-Type: ${expected}, in UTF-8`);

export const restMediaType = 'application/a2a+json; charset=utf-8';

export const undecodedPath = (): A2aError =>
  invalidParams('path', 'cannot be decoded: a % is followed by two hexadecimal digits of UTF-8');

/** For a role in an address, a tenant or a message. */
export const unknownRoleText = (role: string): string =>
  describeRefusal(refusal('role_unknown', { role: role.slice(0, 100) }));

export const taskNotFound = (id: string): A2aError =>
  new A2aError('TASK_NOT_FOUND', `task ${id.slice(0, 200)} does not exist`);

/** Errors that A2A has no name for say the code of ours in their details. */
const reasonOf: { readonly [Code in ErrorCode]: A2aReason } = {
  task_not_found: 'TASK_NOT_FOUND',
  dependencies_unmet: 'UNSUPPORTED_OPERATION',
  dependency_cycle: 'UNSUPPORTED_OPERATION',
  already_running: 'UNSUPPORTED_OPERATION',
  event_not_allowed: 'UNSUPPORTED_OPERATION',
  role_unknown: 'INVALID_PARAMS',
  queue_full: 'UNSUPPORTED_OPERATION',
  credential_missing: 'UNSUPPORTED_OPERATION',
  tracker_unavailable: 'UNSUPPORTED_OPERATION',
  tracker_conflict: 'UNSUPPORTED_OPERATION',
  forbidden: 'FORBIDDEN',
  project_refused: 'UNSUPPORTED_OPERATION',
  stale_attempt: 'UNSUPPORTED_OPERATION',
  invalid_params: 'INVALID_PARAMS',
  internal: 'INTERNAL',
};

const fieldViolationsOf = ({ code, facts }: ServiceError): readonly FieldViolation[] => {
  if (code !== 'invalid_params') return [];
  const { fields } = facts as { fields: readonly { path: string; problem: string }[] };
  return fields.map(({ path, problem }) => ({ field: path, description: problem }));
};

/** A refusal of our service in A2A's words. */
export const fromService = (error: ServiceError): A2aError =>
  error.code === 'internal'
    ? new A2aError('INTERNAL', 'internal error')
    : new A2aError(reasonOf[error.code], error.message, {
        fields: fieldViolationsOf(error),
        ours: error,
      });

export const rpcErrorOf = ({ reason, message, details }: A2aError) => ({
  code: errorCodes[reason][0],
  message,
  ...(details.length === 0 ? {} : { data: details }),
});

export const httpErrorOf = ({ reason, message, details }: A2aError) => {
  const [, code, status] = errorCodes[reason];
  return { code, body: { error: { code, status, message, details } } };
};
