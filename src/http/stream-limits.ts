export interface StreamLimits {
  readonly inAll: number;
  readonly perTask: number;
}

export interface StreamCounter {
  /**
   * @param taskId null for the stream of all tasks, which only `inAll` limits
   * @returns `close`, to be called when the stream closes, or the limit that refuses it
   */
  open(
    taskId: string | null,
  ): { readonly close: () => void } | { readonly refused: keyof StreamLimits };
}

export const createStreamCounter = (limitsNow: () => StreamLimits): StreamCounter => {
  const ofTask = new Map<string, number>();
  let total = 0;
  const count = (taskId: string | null, more: 1 | -1): void => {
    total += more;
    if (taskId === null) return;
    const left = (ofTask.get(taskId) ?? 0) + more;
    if (left === 0) ofTask.delete(taskId);
    else ofTask.set(taskId, left);
  };
  return {
    open: (taskId) => {
      const limits = limitsNow();
      if (total >= limits.inAll) return { refused: 'inAll' };
      if (taskId !== null && (ofTask.get(taskId) ?? 0) >= limits.perTask)
        return { refused: 'perTask' };
      count(taskId, 1);
      let closed = false;
      return {
        close: () => {
          if (closed) return;
          closed = true;
          count(taskId, -1);
        },
      };
    },
  };
};
