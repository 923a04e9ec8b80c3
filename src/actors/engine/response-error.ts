import type { ResponseProblem } from '../../machines/command-refusals.ts';
import { type Refusal, ServiceError } from '../../machines/errors.ts';

/** The names of `respond` and `tell` on the wire. */
const responsePaths = { inputId: 'input_id', text: 'text', decision: 'decision' } as const;

export const asResponseError = (refused: Refusal | ResponseProblem): ServiceError => {
  if ('code' in refused) return ServiceError.from(refused);
  const { field, problem } = refused;
  return new ServiceError('invalid_params', { fields: [{ path: responsePaths[field], problem }] });
};
