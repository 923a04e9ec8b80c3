/** A task that a run did not start. */
export interface Skipped {
  readonly task_id: string;
  readonly reason: string;
  readonly code: string;
}

/** Where the reason of the server names a command, what to do here. */
const words: Readonly<Record<string, string>> = {
  no_role: 'no role yet, choose one and run it',
  for_person: 'a person does it',
  approved: 'its work is approved, merge it or retry',
  complete: 'complete already',
};

const idsAtMost = 8;
const reasonsAtMost = 4;

/** All tasks by their reason: `bd-a1 and bd-b2 (no role yet …); bd-c3 (…)`; long lists are cut. */
export const whySkipped = (skipped: readonly Skipped[]): string => {
  const byReason = new Map<string, string[]>();
  for (const { task_id, reason, code } of skipped) {
    const why = words[code] ?? reason;
    byReason.set(why, [...(byReason.get(why) ?? []), task_id]);
  }
  const groups = [...byReason].map(([why, ids]) => {
    const more = ids.length > idsAtMost ? ` and ${ids.length - idsAtMost} more` : '';
    return { text: `${ids.slice(0, idsAtMost).join(', ')}${more} (${why})`, count: ids.length };
  });
  const rest = groups.slice(reasonsAtMost).reduce((sum, { count }) => sum + count, 0);
  const shown = groups.slice(0, reasonsAtMost).map(({ text }) => text);
  return [...shown, ...(rest === 0 ? [] : [`${rest} more for other reasons`])].join('; ');
};
