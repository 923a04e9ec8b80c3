import { dayOf, type Usage } from '../../data/totals.ts';
import { count, money } from '../../model/format.ts';

const dayMs = 86_400_000;
const [width, height] = [520, 130];
const bottom = 20;

type Row = Usage['days'][number];

const roleNames = ['engineer', 'architect', 'tester', 'reviewer', 'product-manager'];
const roleClass = (role: string): string => `role-${Math.max(0, roleNames.indexOf(role))}`;

/** What a bar shows: money where prices are known, else tokens. */
const measure = (rows: readonly Row[]) =>
  rows.some(({ cost_usd }) => cost_usd !== undefined && cost_usd > 0)
    ? { of: ({ cost_usd }: Row) => cost_usd ?? 0, text: money }
    : {
        of: ({ input_tokens, output_tokens }: Row) => input_tokens + output_tokens,
        text: (value: number) => `${count(value)} tokens`,
      };

const Chart = ({ rows }: { rows: readonly Row[] }) => {
  const { of, text } = measure(rows);
  const days = Array.from({ length: 7 }, (_, index) => dayOf(Date.now() - (6 - index) * dayMs));
  const sums = days.map((day) => rows.filter((row) => row.day === day));
  const totals = sums.map((each) => each.reduce((sum, row) => sum + of(row), 0));
  const most = Math.max(...totals);
  if (most === 0) return null;
  const step = width / days.length;
  return (
    <svg class="spend" viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {days.map((day, index) => {
        let y = height - bottom;
        return (
          <g key={day}>
            {(sums[index] ?? []).map((row) => {
              const size = (of(row) / most) * (height - bottom - 20);
              y -= size;
              return (
                <rect
                  key={row.role}
                  class={roleClass(row.role)}
                  x={index * step + step / 4}
                  y={y}
                  width={step / 2}
                  height={size}
                />
              );
            })}
            {(totals[index] ?? 0) > 0 && (
              <text x={(index + 0.5) * step} y={y - 5}>
                {text(totals[index] ?? 0)}
              </text>
            )}
            <text x={(index + 0.5) * step} y={height - 5}>
              {day.slice(5)}
            </text>
          </g>
        );
      })}
      <line class="lane-line" x1="0" x2={width} y1={height - bottom} y2={height - bottom} />
    </svg>
  );
};

const sumOf = (rows: readonly Row[]) => {
  const known = rows.flatMap(({ cost_usd }) => (cost_usd === undefined ? [] : [cost_usd]));
  return {
    attempts: rows.reduce((sum, { attempts }) => sum + attempts, 0),
    failed: rows.reduce((sum, { failed }) => sum + failed, 0),
    tokens: rows.reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0),
    cost: known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0),
  };
};

export const Spend = ({ usage: { days } }: { usage: Usage }) => {
  if (days.length === 0) return <p class="quiet">No attempt has ended in the last 7 days.</p>;
  const roles = [...new Set(days.map(({ role }) => role))];
  return (
    <>
      <Chart rows={days} />
      <table>
        <thead>
          <tr>
            <th>Role</th>
            <th class="number">Attempts</th>
            <th class="number">Failed</th>
            <th class="number">Tokens</th>
            <th class="number">Cost</th>
          </tr>
        </thead>
        <tbody>
          {roles.map((role) => {
            const sum = sumOf(days.filter((row) => row.role === role));
            return (
              <tr key={role}>
                <td>
                  <span class={`swatch ${roleClass(role)}`} /> {role}
                </td>
                <td class="number">{sum.attempts}</td>
                <td class="number">{sum.failed}</td>
                <td class="number">{count(sum.tokens)}</td>
                <td class="number">{sum.cost === null ? '–' : money(sum.cost)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
};
