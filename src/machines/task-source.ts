/** The issue that a task came from. */
export interface TaskSource {
  readonly type: 'github';
  /** Its page. */
  readonly url: string;
  readonly number: number;
}

const issuePage = /^https?:\/\/[^/\s]+\/[\w.-]+\/[\w.-]+\/issues\/(\d{1,15})$/;

/** Null for a reference that is no page of an issue. */
export const sourceOf = (externalRef: string | undefined): TaskSource | null => {
  const [url = '', number] = issuePage.exec(externalRef ?? '') ?? [];
  return number === undefined ? null : { type: 'github', url, number: Number(number) };
};
