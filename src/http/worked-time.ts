interface WorkTimes {
  readonly started_at?: string | undefined;
  readonly completed_at?: string | undefined;
  readonly waits_since?: string | undefined;
  readonly waited_seconds?: number | undefined;
}

/** The working time of the latest attempt (ms), without its waits; null before the first. */
export const workedMs = (
  { started_at: from, completed_at: to, waits_since: since, waited_seconds: waited = 0 }: WorkTimes,
  now: number,
): number | null => {
  if (from === undefined) return null;
  const at = to ?? since;
  const end = at === undefined ? now : Date.parse(at);
  return Math.max(0, end - Date.parse(from) - waited * 1_000);
};
