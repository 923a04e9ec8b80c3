/** The reason of a close by hand, in the tracker, where none was given. */
export const defaultCloseReason = 'Closed by hand with agent close';
