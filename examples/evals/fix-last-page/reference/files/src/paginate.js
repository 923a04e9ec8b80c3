/** One page of a list; pages count from 1. An empty list has one page, a page outside the range is the nearest one. */
export const paginate = (items, { page = 1, size = 10 } = {}) => {
  const pages = Math.max(1, Math.ceil(items.length / size));
  const current = Math.min(Math.max(page, 1), pages);
  const start = (current - 1) * size;
  return { items: items.slice(start, start + size), page: current, pages, hasNext: current < pages };
};
