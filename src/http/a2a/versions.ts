export const a2aVersions = ['1.0', '0.3'] as const;
export type A2aVersion = (typeof a2aVersions)[number];

/** `a2a` of the configuration. */
export interface A2aRules {
  readonly versions: readonly A2aVersion[];
  /** A request without A2A-Version is one of 0.3, as A2A has it; else the name of its method says it. */
  readonly isStrict: boolean;
  /** The server as clients reach it, without a slash at its end; null: as they asked for the card. */
  readonly publicUrl: string | null;
}
