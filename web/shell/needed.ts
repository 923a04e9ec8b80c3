import { computed } from '@preact/signals';
import { tasks } from '../data/tasks.ts';
import { needing } from '../model/order.ts';

export const needed = computed(() => needing(tasks.value));
