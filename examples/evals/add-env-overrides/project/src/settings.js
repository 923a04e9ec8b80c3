/** The settings of the application. */
export const loadSettings = (defaults, env) => structuredClone(defaults);
