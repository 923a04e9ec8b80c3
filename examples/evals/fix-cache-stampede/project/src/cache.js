/** Remembers what `load` answers for a key, for `ttlMs` from the end of the load. */
export const createCache = (load, { ttlMs = 60_000, now = Date.now } = {}) => {
  const entries = new Map();
  return {
    async get(key) {
      const found = entries.get(key);
      if (found !== undefined && now() - found.at < ttlMs) return found.value;
      const value = await load(key);
      entries.set(key, { at: now(), value });
      return value;
    },
    delete(key) {
      entries.delete(key);
    },
  };
};
