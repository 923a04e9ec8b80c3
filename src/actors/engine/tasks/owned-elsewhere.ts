import { ServiceError } from '../../../machines/errors.ts';

/** Another live server has the task, so nothing was changed here. */
export class OwnedElsewhereError extends ServiceError<'internal'> {
  /** The start of that server. */
  readonly owner: string;

  constructor(owner: string) {
    super('internal', { detail: `the task is with the server ${owner} now; try again` });
    this.owner = owner;
  }
}
