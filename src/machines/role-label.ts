const rolePrefix = 'role:';

export const roleLabel = (role: string): string => `${rolePrefix}${role}`;

export const isRoleLabel = (label: string): boolean => label.startsWith(rolePrefix);

/** The role that a label names; it may be unknown to us. */
export const roleInLabels = (labels: readonly string[]): string | undefined =>
  labels.find(isRoleLabel)?.slice(rolePrefix.length);
