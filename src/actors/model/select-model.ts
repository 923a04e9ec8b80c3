import type { Model } from './port.ts';

/** The model for a requested name; null when only the provider has it and there is no credential for the provider. */
export const selectModel = (
  { scripted, remote }: { readonly scripted: Model; readonly remote: Model | null },
  requested: string,
): Model | null => (requested === 'scripted' ? scripted : remote);
