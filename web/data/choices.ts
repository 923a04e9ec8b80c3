/** Choices stay in the browser; one that keeps nothing forgets them with the page. */
const prefix = `agent-task-server.${location.pathname.slice(1)}`;

export const chosen = (name: string): unknown => {
  try {
    return JSON.parse(localStorage.getItem(prefix + name) ?? 'null');
  } catch {
    return null;
  }
};

export const choose = (name: string, value: unknown): void => {
  try {
    localStorage.setItem(prefix + name, JSON.stringify(value));
  } catch {
    // The choice holds until the page is closed.
  }
};
