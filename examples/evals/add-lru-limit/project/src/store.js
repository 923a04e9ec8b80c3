/** Keeps pictures (`Uint8Array`) by name. */
export const createStore = () => {
  const pictures = new Map();
  let bytes = 0;
  return {
    put(name, picture) {
      bytes += picture.byteLength - (pictures.get(name)?.byteLength ?? 0);
      pictures.set(name, picture);
      return true;
    },
    get: (name) => pictures.get(name),
    has: (name) => pictures.has(name),
    delete(name) {
      bytes -= pictures.get(name)?.byteLength ?? 0;
      return pictures.delete(name);
    },
    size: () => bytes,
  };
};
