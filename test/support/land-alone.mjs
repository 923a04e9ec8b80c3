/** `landAlone` of land-alone.ts, for scripts that run apart. */
export const landAlone = async (workspace, taskId, attempt, style, title) => {
  const members = [
    {
      ...{ taskId, attempt, title, style, verify: true, by: 'person' },
      ...{ priority: 2, createdAt: '', after: [], tickets: [] },
    },
  ];
  const train = await workspace.build(members);
  const [ended] = train.ended;
  if (ended !== undefined) return ended.merged;
  const landed = await workspace.land({ ...train, members, commands: null });
  if (landed.status !== 'landed') return { ...landed.why, branch: train.cars[0]?.branch ?? '' };
  return { status: 'merged', into: landed.into, commit: landed.commits[0] };
};
