/** Remembers what `load` answers for a key, for `ttlMs` from the end of the load; loads each key once at a time. */
export const createCache = (load, { ttlMs = 60_000, now = Date.now } = {}) => {
  const entries = new Map();
  const loading = new Map();

  const begin = (key) => {
    const work = (async () => {
      try {
        const value = await load(key);
        if (loading.get(key) === work) entries.set(key, { at: now(), value });
        return value;
      } finally {
        if (loading.get(key) === work) loading.delete(key);
      }
    })();
    loading.set(key, work);
    return work;
  };

  return {
    async get(key) {
      const found = entries.get(key);
      if (found !== undefined && now() - found.at < ttlMs) return found.value;
      return loading.get(key) ?? begin(key);
    },
    delete(key) {
      entries.delete(key);
      loading.delete(key);
    },
  };
};
