export interface UseCounts {
  add(key: string): void;
  remove(key: string): void;
  has(key: string): boolean;
}

export const createUseCounts = (): UseCounts => {
  const counts = new Map<string, number>();
  return {
    add: (key) => void counts.set(key, (counts.get(key) ?? 0) + 1),
    remove: (key) => {
      const others = (counts.get(key) ?? 1) - 1;
      if (others === 0) counts.delete(key);
      else counts.set(key, others);
    },
    has: (key) => counts.has(key),
  };
};
