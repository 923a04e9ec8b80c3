import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { toolbox } from '../../../src/actors/tools/toolbox.ts';
import { shippedFile, shippedRoles } from '../../../src/cli/roles/read-project-roles.ts';
import { roles } from '../../../src/machines/task.ts';

test('there is a file for each role and no other', () => {
  const files = readdirSync(dirname(shippedFile('engineer')));

  expect(files.toSorted()).toEqual(roles.map((role) => `${role}.yml`).toSorted());
});

test.each(roles)(
  '%s has a purpose, a limit, tools that exist, criteria and a prompt that ends with finish',
  (role) => {
    const profile = shippedRoles()[role];

    expect(profile.role).toBe(role);
    expect(profile.description).not.toBe('');
    expect(toolbox.map(({ name }) => name)).toEqual(expect.arrayContaining([...profile.tools]));
    expect(profile.tools).toContain('finish');
    expect(profile.prompt).toMatch(/To end, call finish\./);
    expect(profile.prompt.split('\n').length).toBeLessThanOrEqual(16);
    expect(profile.criteria.length).toBeGreaterThan(1);
    expect(profile.projectNotes).toBeNull();
  },
);

test('only roles that build may edit and run commands; a reviewer writes nothing', () => {
  const may = (tool: string) => roles.filter((role) => shippedRoles()[role].tools.includes(tool));

  expect(may('edit')).toEqual(['engineer', 'tester']);
  expect(may('bash')).toEqual(['engineer', 'tester', 'reviewer']);
  expect(may('write')).toEqual(['engineer', 'tester', 'architect', 'product-manager']);
});

test('the limits are 10 minutes, and 15 for those who write documents', () => {
  expect(roles.map((role) => shippedRoles()[role].timeoutMs / 60_000)).toEqual([
    10, 10, 10, 15, 15,
  ]);
});
