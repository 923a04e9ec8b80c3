import type { ErrorCode } from '../machines/errors.ts';

export const errorStatuses = {
  task_not_found: { rpc: -32001, http: 404 },
  dependencies_unmet: { rpc: -32010, http: 409 },
  dependency_cycle: { rpc: -32011, http: 409 },
  already_running: { rpc: -32012, http: 409 },
  event_not_allowed: { rpc: -32013, http: 409 },
  role_unknown: { rpc: -32014, http: 400 },
  queue_full: { rpc: -32015, http: 429 },
  credential_missing: { rpc: -32016, http: 503 },
  tracker_unavailable: { rpc: -32017, http: 503 },
  tracker_conflict: { rpc: -32018, http: 409 },
  stale_attempt: { rpc: -32019, http: 409 },
  forbidden: { rpc: -32034, http: 403 },
  project_refused: { rpc: -32033, http: 403 },
  invalid_params: { rpc: -32602, http: 400 },
  internal: { rpc: -32603, http: 500 },
} as const satisfies Record<ErrorCode, { rpc: number; http: number }>;

export const envelopeErrors = {
  parse_error: { rpc: -32700, http: 400 },
  invalid_request: { rpc: -32600, http: 400 },
  method_not_found: { rpc: -32601, http: 404 },
} as const;

export const requestErrors = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  too_many_failures: 429,
  too_many_requests: 429,
  headers_too_large: 431,
} as const;

/** The body of every error outside JSON-RPC. */
export const errorBody = (code: string, message: string, facts: object = {}) => ({
  error: { code, message, ...facts },
});
