type Fields = Readonly<Record<string, unknown>>;
interface SnapshotData {
  readonly task: Fields;
}

/** Stands for a field that is as in the base. A task view has no such field. */
const standIn = '{}';
/** A smaller text is not made smaller by another base. */
const smallBytes = 1_024;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parseData = (text: string): SnapshotData | null => {
  const data: unknown = JSON.parse(text);
  return isFields(data) && isFields(data['task']) ? { ...data, task: data['task'] } : null;
};

const isDeepSame = (one: unknown, other: unknown): boolean =>
  one === other ||
  (typeof one === 'object' &&
    typeof other === 'object' &&
    JSON.stringify(one) === JSON.stringify(other));

const isStandIn = (value: unknown): boolean => isFields(value) && JSON.stringify(value) === standIn;

const withTask = (data: SnapshotData, task: readonly (readonly [string, unknown])[]): string =>
  JSON.stringify({ ...data, task: Object.fromEntries(task) });

/** A whole snapshot that others are shortened by; parsed once. */
export interface SnapshotBase {
  /**
   * The text of a snapshot without the fields of its task that are as in the base, in the same
   * order.
   * @returns null when the text must be kept whole: it would not be much shorter, or would not come
   * back the same
   */
  shorten(text: string): string | null;
}

export const createSnapshotBase = (text: string): SnapshotBase => {
  const base = parseData(text)?.task;
  return {
    shorten: (text) => {
      const data = base === undefined ? null : parseData(text);
      if (base === undefined || data === null || JSON.stringify(data) !== text) return null;
      const fields = Object.entries(data.task);
      if (fields.some(([, value]) => isStandIn(value))) return null;
      const shorter = withTask(
        data,
        fields.map(([key, value]) => [key, isDeepSame(value, base[key]) ? {} : value]),
      );
      return shorter.length <= Math.max(smallBytes, text.length / 2) ? shorter : null;
    },
  };
};

/** The fields of a task, those that a shortened snapshot lacks from its base. */
export const filledFrom = (base: Fields, task: Fields): Fields =>
  Object.fromEntries(
    Object.entries(task).map(([key, value]) => [key, isStandIn(value) ? base[key] : value]),
  );

export const withBase = (text: string, base: string): string => {
  const [given, other] = [parseData(text), parseData(base)];
  return given === null || other === null
    ? text
    : JSON.stringify({ ...given, task: filledFrom(other.task, given.task) });
};
