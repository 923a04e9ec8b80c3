import type { Forge } from '../../forge/port.ts';

/** A forge, with what a push to it needs. */
export interface ForgePlace {
  readonly forge: Forge;
  /** `owner/name` */
  readonly repository: string;
  /** The address that is pushed to. */
  readonly url: string;
  /** Null: the address needs none of ours. */
  readonly token: string | null;
}

/** Rejects with `PullRequestError` when there is no forge, or no token for it. */
export type FindForge = (signal: AbortSignal) => Promise<ForgePlace>;
