import type { Model } from './port.ts';

/** Null when the provider is needed and there is no credential for it. */
export const selectModel = (
  { scripted, remote }: { readonly scripted: Model; readonly remote: Model | null },
  requested: string,
): Model | null => (requested === 'scripted' ? scripted : remote);
