import { StoreError } from '../store/port.ts';

/** Another server has this pending task; only that one may change it. */
export class OwnedElsewhereError extends StoreError {
  override readonly name = 'OwnedElsewhereError';
  readonly owner: string;

  constructor(taskId: string, owner: string) {
    super(`${taskId} is at work on the server ${owner}`);
    this.owner = owner;
  }
}
