export const thoroughnessLevels = ['quick', 'medium', 'deep'] as const;
export type Thoroughness = (typeof thoroughnessLevels)[number];
