type Fields = Readonly<Record<string, unknown>>;
interface SnapshotData {
  readonly task: Fields;
}

/** Stands for a field that is as in the base. A task view has no such field. */
const same = '{}';
/** A smaller text is not made smaller by another base. */
const smallBytes = 1_024;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parse = (text: string): SnapshotData | null => {
  const data: unknown = JSON.parse(text);
  return isFields(data) && isFields(data['task']) ? { ...data, task: data['task'] } : null;
};

const mapTask = (data: SnapshotData, change: (value: unknown, key: string) => unknown): string =>
  JSON.stringify({
    ...data,
    task: Object.fromEntries(
      Object.entries(data.task).map(([key, value]) => [key, change(value, key)]),
    ),
  });

/**
 * The text of a snapshot without the fields of its task that are as in `base`, in the same order.
 * @returns null when the text must be kept whole: it would not be much shorter, or would not come
 * back the same
 */
export const withoutBase = (text: string, base: string): string | null => {
  const [given, other] = [parse(text), parse(base)];
  if (given === null || other === null || JSON.stringify(given) !== text) return null;
  let isClear = true;
  const shorter = mapTask(given, (value, key) => {
    const own = JSON.stringify(value);
    if (own === same) isClear = false;
    return own === JSON.stringify(other.task[key]) ? {} : value;
  });
  const isShorter = shorter.length <= Math.max(smallBytes, text.length / 2);
  return isClear && isShorter ? shorter : null;
};

export const withBase = (text: string, base: string): string => {
  const [given, other] = [parse(text), parse(base)];
  if (given === null || other === null) return text;
  return mapTask(given, (value, key) => (JSON.stringify(value) === same ? other.task[key] : value));
};
