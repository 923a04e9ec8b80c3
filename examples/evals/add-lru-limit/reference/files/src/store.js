/** Keeps pictures (`Uint8Array`) by name, up to `maxBytes` in all; the least recently used go first. */
export const createStore = ({ maxBytes = Number.POSITIVE_INFINITY, onEvict = () => {} } = {}) => {
  // In order of use: what was used last is last.
  const pictures = new Map();
  let bytes = 0;

  const remove = (name) => {
    bytes -= pictures.get(name)?.byteLength ?? 0;
    return pictures.delete(name);
  };
  const makeRoom = () => {
    for (const name of pictures.keys()) {
      if (bytes <= maxBytes) return;
      remove(name);
      onEvict(name);
    }
  };

  return {
    put(name, picture) {
      remove(name);
      if (picture.byteLength > maxBytes) return false;
      bytes += picture.byteLength;
      pictures.set(name, picture);
      makeRoom();
      return true;
    },
    get(name) {
      const picture = pictures.get(name);
      if (picture === undefined) return undefined;
      pictures.delete(name);
      pictures.set(name, picture);
      return picture;
    },
    has: (name) => pictures.has(name),
    delete: remove,
    size: () => bytes,
  };
};
