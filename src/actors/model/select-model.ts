import type { Model } from './port.ts';

export const selectModel = (
  { scripted, remote }: { readonly scripted: Model; readonly remote: Model | null },
  requested: string,
): Model | null => (requested === 'scripted' ? scripted : remote);
